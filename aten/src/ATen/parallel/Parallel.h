#pragma once

// The one door to threads. A range is cut into chunks whose boundaries depend only on
// (begin, end, grain), never on the number of threads, so that everything computed chunk by
// chunk has the same bits on every machine. Chunks are taken by whoever is there, the caller
// included, and the caller waits only for chunks that are really being executed: a core kept busy
// by another process costs its share and no more.

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <memory>

namespace c10 {

/// Thrown by a parallel region whose interrupt check asked for cancellation (Ctrl-C).
class C10_API InterruptedError : public Error {
 public:
  using Error::Error;
};

} // namespace c10

namespace at {

/// Upper bound of the number of chunks in one region: enough for load balance on many cores and
/// for a quick answer to Ctrl-C, few enough for per-chunk partial results.
constexpr int64_t kMaxChunks = 128;

/// Size of every chunk but the last: a multiple of `grain`. Requires range > 0.
constexpr int64_t chunk_size(int64_t range, int64_t grain) {
  const int64_t g = grain > 0 ? grain : 1;
  const int64_t grains = range / g + (range % g != 0);
  const int64_t per_chunk = grains / kMaxChunks + (grains % kMaxChunks != 0);
  // Written so that the product cannot overflow when the grain is near 2^63.
  return per_chunk == 1 ? (g < range ? g : range) : per_chunk * g;
}

/// Number of calls of f that parallel_for makes for this range: callers size partial results by
/// it, and find a chunk's index as (b - begin) / chunk_size(range, grain).
constexpr int64_t chunk_count(int64_t range, int64_t grain) {
  if (range <= 0) return 0;
  const int64_t size = chunk_size(range, grain);
  return range / size + (range % size != 0);
}

namespace detail {

using ChunkFn = void (*)(const void* f, int64_t b, int64_t e);
TORCH_API void run_region(int64_t begin, int64_t end, int64_t chunk, ChunkFn run, const void* f);

} // namespace detail

/// Calls f(b, e) for each chunk of [begin, end); returns when all have ended. An exception thrown
/// by f is rethrown here (the one of the lowest chunk, as in a plain loop) and the chunks not yet
/// begun are skipped. Inside a region the call runs the same chunks one after the other. The
/// range must be shorter than 2^63.
template <class F> void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  if (end <= begin) return;
  const int64_t range = end - begin;
  if (range <= grain || range == 1) {
    f(begin, end);
    return;
  }
  const detail::ChunkFn run = [](const void* erased, int64_t b, int64_t e) {
    (*static_cast<const F*>(erased))(b, e);
  };
  detail::run_region(begin, end, chunk_size(range, grain), run, &f);
}

/// f(b, e, ident) gives the result of one chunk; results are combined in chunk order, whatever the
/// number of threads: combine(combine(r0, r1), r2) ... An empty range gives ident.
template <class T, class F, class C> T parallel_reduce(int64_t begin, int64_t end, int64_t grain,
                                                       const T& ident, const F& f,
                                                       const C& combine) {
  if (end <= begin) return ident;
  const int64_t range = end - begin;
  const int64_t chunk = chunk_size(range, grain);
  if (chunk >= range) return f(begin, end, ident);
  struct Slot { // own type, so that T = bool is not packed
    T value;
  };
  const int64_t count = chunk_count(range, grain);
  std::unique_ptr<Slot[]> partial(new Slot[static_cast<size_t>(count)]);
  parallel_for(begin, end, grain,
               [&](int64_t b, int64_t e) { partial[(b - begin) / chunk].value = f(b, e, ident); });
  T total = partial[0].value;
  for (int64_t i = 1; i < count; ++i) total = combine(total, partial[i].value);
  return total;
}

/// Threads that work on a region, the caller included. The default is OMP_NUM_THREADS, then
/// MKL_NUM_THREADS, then the smaller of the affinity mask and the cgroup's CPU quota.
TORCH_API int get_num_threads();
/// n >= 1, else c10::Error. Takes effect with the next region.
TORCH_API void set_num_threads(int n);
/// 0 for the thread that called parallel_for, 1.. for workers.
TORCH_API int get_thread_num();
TORCH_API bool in_parallel_region();

TORCH_API int get_num_interop_threads();
/// n >= 1, else c10::Error.
TORCH_API void set_num_interop_threads(int n);

/// `poll` is called on the calling thread at most every 50 ms of a long region; true cancels it:
/// chunks not yet begun are skipped and parallel_for throws c10::InterruptedError. nullptr removes
/// it.
TORCH_API void set_interrupt_check(bool (*poll)());
/// For long serial loops: polls if 50 ms have passed since this thread polled last, and throws
/// c10::InterruptedError when told to cancel. Cheap enough for every few microseconds of work.
TORCH_API void check_interrupt();

/// What surrounds large work on the calling thread; the Python layer releases the GIL in `enter`
/// and takes it back in `leave`, which receives what `enter` returned.
struct BlockingHooks {
  void* (*enter)();
  void (*leave)(void*);
};
/// Both null removes them. Not to be called while a BlockingRegion is alive.
TORCH_API void set_blocking_hooks(BlockingHooks hooks);

/// RAII over the hooks. Nestable; does nothing inside parallel regions and on worker threads.
class TORCH_API BlockingRegion {
 public:
  BlockingRegion();
  ~BlockingRegion();
  BlockingRegion(const BlockingRegion&) = delete;
  BlockingRegion& operator=(const BlockingRegion&) = delete;

 private:
  void* context_ = nullptr;
  void (*leave_)(void*) = nullptr;
};

} // namespace at
