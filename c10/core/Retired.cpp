// See Retired.h. Tickets grow; what is retired carries the next ticket and waits until no smaller
// one is out. Both lists are short: one ticket per thread that computes, and retirements are rare.
#include <c10/core/Retired.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include <pthread.h>

namespace c10 {
namespace {

struct Waiting {
  uint64_t ticket;
  void (*end)(void*);
  void* object;
};

struct Work {
  std::mutex mutex;
  uint64_t next = 1;
  std::vector<uint64_t> running;
  std::vector<Waiting> waiting;
};
std::atomic<int> g_running{0};

// Never destroyed: threads may compute until the process ends.
Work& work() {
  static Work* only = [] {
    static Work* made = new Work;
    // In a child only the thread that forked goes on; work of the others has ended without a word.
    pthread_atfork([] { made->mutex.lock(); }, [] { made->mutex.unlock(); },
                   [] {
                     made->running.clear();
                     g_running.store(0);
                     made->mutex.unlock();
                   });
    return made;
  }();
  return *only;
}

// What nobody can see any more. Needs the lock.
std::vector<Waiting> take_unseen(Work& all) {
  const auto oldest = std::min_element(all.running.begin(), all.running.end());
  const uint64_t limit = oldest == all.running.end() ? UINT64_MAX : *oldest;
  const auto kept = std::stable_partition(all.waiting.begin(), all.waiting.end(),
                                          [=](const Waiting& w) { return w.ticket > limit; });
  std::vector<Waiting> unseen(kept, all.waiting.end());
  all.waiting.erase(kept, all.waiting.end());
  return unseen;
}

} // namespace

uint64_t begin_unlocked_work() {
  Work& all = work();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.running.push_back(all.next);
  g_running.fetch_add(1, std::memory_order_relaxed);
  return all.next++;
}

void end_unlocked_work(uint64_t ticket) noexcept {
  std::vector<Waiting> unseen; // ends after the lock is given back
  {
    Work& all = work();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto mine = std::find(all.running.begin(), all.running.end(), ticket);
    if (mine == all.running.end()) return;
    *mine = all.running.back();
    all.running.pop_back();
    g_running.fetch_sub(1, std::memory_order_relaxed);
    if (C10_LIKELY(all.waiting.empty())) return;
    unseen = take_unseen(all);
  }
  for (const Waiting& w : unseen) w.end(w.object);
}

bool has_unlocked_work() noexcept { return g_running.load(std::memory_order_relaxed) > 0; }

void retire(void (*end)(void*), void* object) noexcept {
  if (has_unlocked_work()) {
    Work& all = work();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (!all.running.empty()) {
      try {
        all.waiting.push_back({all.next, end, object});
      } catch (const std::bad_alloc&) {
        // Without memory for the entry the object is lost, which is better than used when gone.
      }
      return;
    }
  }
  end(object);
}

void retire(DataPtr memory) {
  if (!has_unlocked_work() || memory.get_context() == nullptr) return;
  auto* kept = new DataPtr(std::move(memory));
  retire([](void* p) { delete static_cast<DataPtr*>(p); }, kept);
}

void retire(Storage storage) noexcept {
  if (!storage) return;
  retire([](void* p) { static_cast<StorageImpl*>(p)->decref(); }, storage.release());
}

} // namespace c10
