// See NestedRelease.h.
#include <c10/util/NestedRelease.h>

#include <new>
#include <vector>

namespace c10 {
namespace {

constexpr int kMaxDepth = 24;

struct Ending {
  void (*end)(void*);
  void* object;
};
// Trivial, so that it can be used while the thread's other objects are destroyed: the list lives
// only while a chain is worked off.
struct Depth {
  int levels;
  std::vector<Ending>* waiting;
};
thread_local Depth depth = {0, nullptr};

bool put_off(const Ending& ending) noexcept {
  try {
    if (depth.waiting == nullptr) depth.waiting = new std::vector<Ending>();
    depth.waiting->push_back(ending);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

} // namespace

void release_nested(void (*end)(void*), void* object) noexcept {
  if (depth.levels >= kMaxDepth && put_off({end, object})) return;
  ++depth.levels;
  end(object);
  // Levels stay above zero meanwhile: what these ends release joins the same list.
  while (depth.levels == 1 && depth.waiting != nullptr && !depth.waiting->empty()) {
    const Ending next = depth.waiting->back();
    depth.waiting->pop_back();
    next.end(next.object);
  }
  if (--depth.levels > 0) return;
  delete depth.waiting;
  depth.waiting = nullptr;
}

} // namespace c10
