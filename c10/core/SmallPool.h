#pragma once

// Thread-local free lists for small blocks: tensor objects, storages, autograd nodes and small
// tensor data. Taking and giving is a few instructions without a lock; a block freed on another
// thread simply joins that thread's list, and lists are bounded, the surplus going back to malloc.
// The fast path is inline because it runs several times in each operator call.

#include <c10/macros/Macros.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace c10::small {

constexpr size_t kAlignment = 64;
constexpr size_t kMaxBytes = 32768;
constexpr int kClasses = 56;
constexpr size_t kListBytes = 64 * 1024; // bound of each list

/// Sizes step by 64 bytes up to 1 KiB and by an eighth of the power of two above.
constexpr int class_of(size_t bytes) { // 1 <= bytes <= kMaxBytes
  if (bytes <= 1024) return static_cast<int>((bytes - 1) / 64);
  const int e = 63 - __builtin_clzll(bytes - 1);
  return 16 + (e - 10) * 8 + static_cast<int>((bytes - 1) >> (e - 3)) - 8;
}
constexpr size_t class_bytes(int index) {
  if (index < 16) return static_cast<size_t>(index + 1) * 64;
  const int e = 10 + (index - 16) / 8;
  return static_cast<size_t>((index - 16) % 8 + 9) << (e - 3);
}
static_assert(class_of(kMaxBytes) == kClasses - 1 && class_bytes(kClasses - 1) == kMaxBytes);
static_assert(class_of(1025) == 16 && class_bytes(16) == 1152);

struct FreeBlock {
  FreeBlock* next;
};
struct FreeList {
  FreeBlock* head;
  uint32_t count;
  uint32_t limit;
};

/// A counter written by its own thread only and read by anyone: plain moves, no locked instruction.
class ThreadCounter {
 public:
  void add(int64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(int64_t n) { value_.store(n, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

/// What a block is used for: statistics only.
enum class Use : int { Data = 0, Object = 1 };

struct ThreadCache {
  FreeList lists[kClasses];
  ThreadCounter live[2]; // blocks by Use
  ThreadCounter total;   // allocations
  ThreadCounter bytes;   // live bytes not yet added to the process's count
  ThreadCache* next;     // all caches, for statistics
  ThreadCache* previous;
};

// One word of static TLS; null before the thread's first block and after its cache is gone.
extern C10_API C10_PLAIN_THREAD_LOCAL ThreadCache* t_cache
    __attribute__((tls_model("initial-exec")));
extern C10_API std::atomic<bool> g_failing; // set_alloc_failure is armed

constexpr int64_t kFlushBytes = 64 * 1024;

C10_API void* take_slow(int index, Use use); // throws c10::OutOfMemoryError
C10_API void give_slow(void* block, int index, Use use) noexcept;
C10_API void flush_bytes(ThreadCache& cache) noexcept;

C10_ALWAYS_INLINE void count(ThreadCache& cache, Use use, int64_t sign, size_t bytes) {
  cache.live[static_cast<int>(use)].add(sign);
  const int64_t pending = cache.bytes.get() + sign * static_cast<int64_t>(bytes);
  cache.bytes.set(pending);
  if (C10_UNLIKELY(pending > kFlushBytes || pending < -kFlushBytes)) flush_bytes(cache);
}

C10_ALWAYS_INLINE void* take(int index, Use use) {
  ThreadCache* cache = t_cache;
  if (C10_LIKELY(cache != nullptr && !g_failing.load(std::memory_order_relaxed))) {
    FreeList& list = cache->lists[index];
    FreeBlock* block = list.head;
    if (C10_LIKELY(block != nullptr)) {
      list.head = block->next;
      --list.count;
      cache->total.add(1);
      count(*cache, use, 1, class_bytes(index));
      return block;
    }
  }
  return take_slow(index, use);
}

C10_ALWAYS_INLINE void give(void* raw, int index, Use use) noexcept {
  ThreadCache* cache = t_cache;
  if (C10_LIKELY(cache != nullptr)) {
    FreeList& list = cache->lists[index];
    if (C10_LIKELY(list.count < list.limit)) {
      FreeBlock* block = static_cast<FreeBlock*>(raw);
      block->next = list.head;
      list.head = block;
      ++list.count;
      count(*cache, use, -1, class_bytes(index));
      return;
    }
  }
  give_slow(raw, index, use);
}

} // namespace c10::small

namespace c10 {

/// operator new and delete of a class of `Size` bytes: 64-byte aligned blocks. take() throws
/// c10::OutOfMemoryError; give() accepts null, may run on any thread and still works while a thread
/// is being torn down.
template <size_t Size> struct SmallPool {
  static_assert(Size > 0 && Size <= small::kMaxBytes, "SmallPool is for small objects");
  static constexpr int kIndex = small::class_of(Size);

  static void* take() { return small::take(kIndex, small::Use::Object); }
  static void give(void* block) noexcept {
    if (block != nullptr) small::give(block, kIndex, small::Use::Object);
  }
};

} // namespace c10
