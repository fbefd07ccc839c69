// The settings and hooks of the parallel interface, and the choice between running a region's
// chunks here and handing them to the pool. Either way they are the same chunks: see Parallel.h.

#include <ATen/parallel/Parallel.h>

#include <ATen/parallel/ThreadCount.h>
#include <ATen/parallel/ThreadPool.h>

#include <atomic>

namespace at {
namespace {

std::atomic<int> g_threads{0}; // 0: not asked yet
std::atomic<int> g_interop_threads{0};
std::atomic<bool (*)()> g_poll{nullptr};
std::atomic<void* (*)()> g_enter{nullptr};
std::atomic<void (*)(void*)> g_leave{nullptr};
thread_local int t_blocking_depth = 0;
constexpr int kMaxThreads = 1024;

/// `setting`, filled with the machine's default on first use.
int setting_or_default(std::atomic<int>& setting) {
  int n = setting.load(std::memory_order_relaxed);
  if (n > 0) return n;
  int expected = 0;
  n = detail::default_num_threads();
  return setting.compare_exchange_strong(expected, n) ? n : expected;
}

/// The chunks one after the other: one thread, or inside a region. On the program's own threads it
/// polls like the pool; on a worker it stops early when the outer region has been interrupted.
void run_serially(int64_t begin, int64_t end, int64_t chunk, detail::ChunkFn run, const void* f) {
  const detail::ThreadState& state = detail::thread_state();
  int64_t polled = detail::now_ms();
  for (int64_t b = begin; b < end;) {
    const int64_t e = end - b <= chunk ? end : b + chunk;
    run(f, b, e);
    b = e;
    if (b >= end) return;
    if (state.region != nullptr && state.region->interrupted.load(std::memory_order_relaxed)) {
      detail::throw_interrupted();
    }
    if (state.worker) continue;
    const int64_t now = detail::now_ms();
    if (now - polled < detail::kPollMs) continue;
    polled = now;
    if (detail::interrupt_requested()) detail::throw_interrupted();
  }
}

} // namespace

namespace detail {

void run_region(int64_t begin, int64_t end, int64_t chunk, ChunkFn run, const void* f) {
  const int threads = in_parallel_region() ? 1 : get_num_threads();
  if (threads > 1 && end - begin > chunk &&
      ThreadPool::get().run(begin, end, chunk, run, f, threads)) {
    return;
  }
  run_serially(begin, end, chunk, run, f);
}

bool interrupt_requested() {
  bool (*poll)() = g_poll.load(std::memory_order_acquire);
  return poll != nullptr && poll();
}

void throw_interrupted() { throw c10::InterruptedError("interrupted"); }

} // namespace detail

int get_num_threads() { return setting_or_default(g_threads); }

void set_num_threads(int n) {
  TORCH_CHECK(n > 0, "Expected positive number of threads, got ", n);
  n = n < kMaxThreads ? n : kMaxThreads;
  g_threads.store(n, std::memory_order_relaxed);
  detail::ThreadPool::get().shrink(n);
}

int get_thread_num() {
  const detail::ThreadState& state = detail::thread_state();
  return state.region != nullptr ? state.number : 0;
}

bool in_parallel_region() {
  const detail::ThreadState& state = detail::thread_state();
  return state.region != nullptr || state.worker;
}

int get_num_interop_threads() { return setting_or_default(g_interop_threads); }

void set_num_interop_threads(int n) {
  TORCH_CHECK(n > 0, "Expected positive number of threads, got ", n);
  g_interop_threads.store(n < kMaxThreads ? n : kMaxThreads, std::memory_order_relaxed);
}

void set_interrupt_check(bool (*poll)()) { g_poll.store(poll, std::memory_order_release); }

void check_interrupt() {
  static thread_local int64_t polled = 0;
  const detail::ThreadState& state = detail::thread_state();
  if (state.region != nullptr && state.region->interrupted.load(std::memory_order_relaxed)) {
    detail::throw_interrupted();
  }
  if (state.worker) return;
  const int64_t now = detail::now_ms();
  if (now - polled < detail::kPollMs) return;
  polled = now;
  if (detail::interrupt_requested()) detail::throw_interrupted();
}

void set_blocking_hooks(BlockingHooks hooks) {
  g_leave.store(hooks.leave, std::memory_order_release);
  g_enter.store(hooks.enter, std::memory_order_release);
}

BlockingRegion::BlockingRegion() {
  if (t_blocking_depth++ > 0 || in_parallel_region()) return;
  void* (*enter)() = g_enter.load(std::memory_order_acquire);
  if (enter == nullptr) return;
  leave_ = g_leave.load(std::memory_order_acquire);
  context_ = enter();
}

BlockingRegion::~BlockingRegion() {
  --t_blocking_depth;
  if (leave_ != nullptr) leave_(context_);
}

} // namespace at
