// The slow side of the small pool: a thread's first block, empty and full lists, threads that end,
// and the sums over threads that the statistics ask for.

#include <c10/core/SmallPool.h>

#include <c10/core/AllocatorState.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <mutex>
#include <new>

#include <pthread.h>

namespace c10::small {

C10_PLAIN_THREAD_LOCAL ThreadCache* t_cache __attribute__((tls_model("initial-exec"))) = nullptr;
std::atomic<bool> g_failing{false};

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kRecycle = false; // a recycled block would hide use after free from the sanitizer
#else
constexpr bool kRecycle = true;
#endif

// Set when this thread's cache is gone for good: thread-local destructors that run later, and
// static ones at process exit, still free tensors.
thread_local bool t_ended __attribute__((tls_model("initial-exec"))) = false;

/// All threads' caches and what threads that ended have left. Never destroyed: see t_ended.
struct Registry {
  std::mutex mutex;
  ThreadCache* first = nullptr;
  std::atomic<int64_t> live[2] = {};
  std::atomic<int64_t> total{0};
};

Registry& registry() {
  static Registry* instance = [] {
    Registry* made = new Registry;
    // A child must not inherit the mutex locked by a thread it does not have.
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                   [] { registry().mutex.unlock(); });
    return made;
  }();
  return *instance;
}

void end_thread() noexcept {
  ThreadCache* cache = t_cache;
  t_cache = nullptr;
  t_ended = true;
  if (cache == nullptr) return;
  for (FreeList& list : cache->lists) {
    while (list.head != nullptr) {
      FreeBlock* block = list.head;
      list.head = block->next;
      std::free(block);
    }
  }
  flush_bytes(*cache);
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (int use = 0; use < 2; ++use) all.live[use].fetch_add(cache->live[use].get());
  all.total.fetch_add(cache->total.get());
  if (cache->next != nullptr) cache->next->previous = cache->previous;
  (cache->previous != nullptr ? cache->previous->next : all.first) = cache->next;
  delete cache;
}

struct EndOfThread {
  ~EndOfThread() { end_thread(); }
  void touch() {}
};

/// Makes this thread's cache; null when the thread is ending or memory is out.
ThreadCache* make_cache() {
  if (t_ended) return nullptr;
  ThreadCache* cache = new (std::nothrow) ThreadCache{};
  if (cache == nullptr) return nullptr;
  for (int i = 0; i < kClasses; ++i) {
    const size_t fit = kListBytes / class_bytes(i);
    cache->lists[i].limit = kRecycle ? static_cast<uint32_t>(fit > 4 ? fit : 4) : 0;
  }
  static thread_local EndOfThread guard; // registers the destructor for this thread
  guard.touch();
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  cache->next = all.first;
  if (all.first != nullptr) all.first->previous = cache;
  all.first = cache;
  t_cache = cache;
  return cache;
}

} // namespace

void flush_bytes(ThreadCache& cache) noexcept {
  detail::add_live_bytes(cache.bytes.get());
  cache.bytes.set(0);
}

void* take_slow(int index, Use use) {
  const size_t bytes = class_bytes(index);
  detail::maybe_fail(bytes);
  ThreadCache* cache = t_cache != nullptr ? t_cache : make_cache();
  void* block = nullptr;
  if (cache != nullptr && cache->lists[index].head != nullptr) { // failing is armed, not our turn
    FreeList& list = cache->lists[index];
    block = list.head;
    list.head = list.head->next;
    --list.count;
  } else if (posix_memalign(&block, kAlignment, bytes) != 0) {
    detail::throw_out_of_memory(bytes);
  }
  if (cache != nullptr) {
    cache->total.add(1);
    count(*cache, use, 1, bytes);
  } else {
    registry().live[static_cast<int>(use)].fetch_add(1);
    registry().total.fetch_add(1);
    detail::add_live_bytes(static_cast<int64_t>(bytes));
  }
  return block;
}

void give_slow(void* block, int index, Use use) noexcept {
  std::free(block);
  const size_t bytes = class_bytes(index);
  if (t_cache != nullptr) {
    count(*t_cache, use, -1, bytes);
    return;
  }
  registry().live[static_cast<int>(use)].fetch_sub(1);
  detail::add_live_bytes(-static_cast<int64_t>(bytes));
}

} // namespace c10::small

namespace c10::detail {

SmallTotals small_totals() {
  small::Registry& all = small::registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  SmallTotals sum{{all.live[0], all.live[1]}, all.total, 0};
  for (small::ThreadCache* cache = all.first; cache != nullptr; cache = cache->next) {
    for (int use = 0; use < 2; ++use) sum.live[use] += cache->live[use].get();
    sum.total += cache->total.get();
    sum.bytes += cache->bytes.get();
  }
  return sum;
}

} // namespace c10::detail
