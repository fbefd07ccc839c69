#pragma once

// The worker pool behind parallel_for. Private to ATen/parallel.
//
// Note [Region slots]
// A region lives in one of a few slots that are never freed. Its chunks are dealt to lanes of
// neighbouring chunks; a lane's ticket packs (first chunk left, threads allowed, end) into one
// atomic word, and a thread owns a chunk only after a compare-and-swap on that word. While a
// claimed chunk is not done the slot's owner cannot return, so the fields read after a successful
// claim belong to the region that was claimed from. A worker that wakes late finds empty lanes, or
// a newer region that it may help just as well; in no case does it touch the stack of a caller that
// has gone, and no caller ever waits for a thread that has claimed nothing. There is no lock on
// this path: a worker preempted at any instruction outside of a chunk blocks nobody.
//
// Note [Lanes]
// A thread begins with the lane of its number and helps in others, from their far end, when it is
// through: the same thread meets the same part of the memory from one operator to the next, as long
// as all have time. Caches are not one for all cores (16 MB multiplied in place by two threads: 128
// us with chunks taken from one queue against 104 us).

#include <ATen/parallel/Parallel.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

namespace at::detail {

/// Chunks of a region not yet claimed; see Note [Lanes].
struct alignas(64) Lane {
  std::atomic<uint64_t> ticket{0}; // next << 32 | threads << 16 | end
};

/// One parallel region in flight; see Note [Region slots].
struct alignas(128) Region {
  static constexpr int kLanes = 8;
  Lane lanes[kLanes];
  std::atomic<uint32_t> lane_count{1};
  std::atomic<uint32_t> done{0}; // chunks ended; also the futex the owner sleeps on
  std::atomic<bool> owner_sleeps{false};
  // Chunks not begun are counted as done without being run, but for those below error_chunk.
  std::atomic<bool> cancelled{false};
  std::atomic<bool> interrupted{false}; // cancelled by Ctrl-C: running chunks may give up too
  std::atomic<bool> taken{false};       // the slot has an owner

  // Written by the owner while no chunk can be claimed.
  ChunkFn run = nullptr;
  const void* f = nullptr;
  int64_t begin = 0, end = 0, chunk = 0;
  uint32_t total = 0;             // chunks
  std::atomic<int> owner_cpu{-1}; // where the owner was when it began; -1: not known

  std::mutex error_mutex; // exceptional path only
  std::exception_ptr error;
  std::atomic<uint32_t> error_chunk{0};
};

class ThreadPool {
 public:
  /// The process's pool, made on first use; a forked child gets a new one without workers.
  static ThreadPool& get();

  /// Runs all chunks with at most `threads` threads, the caller included; see parallel_for. Says
  /// false, having done nothing, when too many callers have regions in flight.
  bool run(int64_t begin, int64_t end, int64_t chunk, ChunkFn f, const void* arg, int threads);

  /// Lets workers beyond `threads - 1` end.
  void shrink(int threads);

 private:
  static constexpr int kSlots = 16;
  static constexpr int kMaxWorkers = 1023;

  struct WorkerStart {
    ThreadPool* pool;
    int index;
  };

  void ensure_workers(int wanted);
  void announce(int wanted);
  Region* take_slot();
  static bool claim(Region& region, uint32_t number, uint32_t& chunk);
  bool help(Region& region, uint32_t number);
  bool help_any(uint32_t number);
  void wait_done(Region& region, uint32_t total, int64_t start_ms);
  void worker_loop(int index);
  static void* worker_main(void* start);
  static void run_chunk(Region& region, uint32_t index);
  static void record_error(Region& region, uint32_t index);

  Region slots_[kSlots];
  std::atomic<uint32_t> active_{0}; // bit i: slot i may have chunks to claim
  std::atomic<uint32_t> epoch_{0};  // futex of sleeping workers, bumped by every announcement
  std::atomic<int> sleepers_{0};
  std::atomic<int> target_{0};    // workers wanted; those with a higher index end
  std::atomic<int> attempted_{0}; // workers we tried to start, so that failure is not retried
  bool alive_[kMaxWorkers] = {};  // guarded by the start mutex
};

/// The region the current thread works on (null outside) and its number there.
struct ThreadState {
  Region* region = nullptr;
  int number = 0;
  bool worker = false;
};
ThreadState& thread_state();

/// Coarse monotonic clock in milliseconds.
int64_t now_ms();
constexpr int64_t kPollMs = 50;
/// Asks the installed interrupt check, if any, on this thread.
bool interrupt_requested();
[[noreturn]] void throw_interrupted();

} // namespace at::detail
