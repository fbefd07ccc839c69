// Workers, claims, sleeping and waking. Who waits spins for a few tens of microseconds, since
// tensor programs issue regions in quick succession, and then sleeps on a futex. Spinning never
// yields: a yield beside a busy process gives away a whole time slice (3 ms measured, for a wait of
// 10 us), while a sleeper is put back as soon as it is woken.

#include <ATen/parallel/ThreadPool.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace at::detail {
namespace {

std::atomic<ThreadPool*> g_pool{nullptr};
std::atomic<uint32_t> g_generation{0}; // grows in a forked child
std::mutex g_start_mutex;              // making the pool and starting workers

constexpr int kPauses = 64; // pauses between two looks at the clock
constexpr int64_t kSpinNs = 30'000;
constexpr uint64_t kOneChunk = uint64_t{1} << 32; // see Lane::ticket

uint32_t ticket_next(uint64_t ticket) { return static_cast<uint32_t>(ticket >> 32); }
uint32_t ticket_threads(uint64_t ticket) { return (ticket >> 16) & 0xffff; }
uint32_t ticket_end(uint64_t ticket) { return ticket & 0xffff; }

void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, timeout, nullptr,
          0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

/// Pauses until `ready()` or the spin budget is spent.
template <class Ready> bool spin_until(const Ready& ready) {
  const int64_t limit = now_ns() + kSpinNs;
  do {
    for (int i = 0; i < kPauses; ++i) {
      if (ready()) return true;
      cpu_pause();
    }
  } while (now_ns() < limit);
  return ready();
}

#if defined(__linux__)
int current_cpu() { return sched_getcpu(); }

/// Moves the calling worker to another CPU than `cpu`, if it may use one. On a busy machine the
/// scheduler puts a woken thread beside the one that woke it, where the two only take turns, and
/// leaves them there for as long as they sleep and wake in milliseconds.
void leave_cpu(int cpu) {
  cpu_set_t sets[8]; // a mask of 8192 CPUs
  if (sched_getaffinity(0, sizeof sets, sets) != 0 || CPU_COUNT_S(sizeof sets, sets) < 2) return;
  CPU_CLR_S(cpu, sizeof sets, sets);
  if (sched_setaffinity(0, sizeof sets, sets) != 0) return;
  CPU_SET_S(cpu, sizeof sets, sets);
  sched_setaffinity(0, sizeof sets, sets);
}
#else
int current_cpu() { return -1; }
void leave_cpu(int) {}
#endif

/// Whether a chunk was left a moment ago.
bool has_work(const Region& region) {
  for (const Lane& lane : region.lanes) {
    const uint64_t ticket = lane.ticket.load(std::memory_order_relaxed);
    if (ticket_next(ticket) < ticket_end(ticket)) return true;
  }
  return false;
}

// The start mutex is held across fork so that the child never inherits it locked by a thread that
// does not exist there. The parent's pool object is left behind in the child, untouched: its
// slots may be in the middle of a region of another thread.
void before_fork() { g_start_mutex.lock(); }
void after_fork_parent() { g_start_mutex.unlock(); }
void after_fork_child() {
  g_pool.store(nullptr, std::memory_order_relaxed);
  g_generation.fetch_add(1, std::memory_order_relaxed);
  g_start_mutex.unlock();
}

/// Sets the thread's current region for a scope.
class RegionScope {
 public:
  explicit RegionScope(Region& region) : saved_(thread_state().region) {
    thread_state().region = &region;
  }
  ~RegionScope() { thread_state().region = saved_; }

 private:
  Region* saved_;
};

} // namespace

ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

int64_t now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

ThreadPool& ThreadPool::get() {
  ThreadPool* pool = g_pool.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  std::lock_guard<std::mutex> lock(g_start_mutex);
  pool = g_pool.load(std::memory_order_relaxed);
  if (pool == nullptr) {
    static const int registered = pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    (void)registered;
    pool = new ThreadPool; // never freed: workers may look at it until the process ends
    g_pool.store(pool, std::memory_order_release);
  }
  return *pool;
}

void ThreadPool::ensure_workers(int wanted) {
  wanted = std::min(wanted, kMaxWorkers);
  if (target_.load(std::memory_order_relaxed) == wanted &&
      attempted_.load(std::memory_order_relaxed) >= wanted) {
    return;
  }
  std::lock_guard<std::mutex> lock(g_start_mutex);
  target_.store(wanted, std::memory_order_relaxed);
  // Workers block all signals: handlers, Python's above all, belong to the program's own threads.
  sigset_t all, saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < wanted; ++i) {
    if (alive_[i]) continue;
    WorkerStart* start = new (std::nothrow) WorkerStart{this, i};
    pthread_t thread;
    if (start == nullptr || pthread_create(&thread, &attr, worker_main, start) != 0) {
      delete start; // fewer workers: slower, never wrong
      break;
    }
    alive_[i] = true;
  }
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
  attempted_.store(wanted, std::memory_order_relaxed);
}

void ThreadPool::shrink(int threads) {
  const int workers = std::max(threads - 1, 0);
  {
    std::lock_guard<std::mutex> lock(g_start_mutex);
    if (target_.load(std::memory_order_relaxed) <= workers) return;
    target_.store(workers, std::memory_order_relaxed);
    attempted_.store(workers, std::memory_order_relaxed);
  }
  epoch_.fetch_add(1);
  futex_wake(epoch_, kMaxWorkers);
}

void* ThreadPool::worker_main(void* raw) {
  WorkerStart* start = static_cast<WorkerStart*>(raw);
  ThreadPool* pool = start->pool;
  const int index = start->index;
  delete start;
  thread_state().worker = true;
  thread_state().number = index + 1;
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "at_worker");
#endif
  pool->worker_loop(index);
  return nullptr;
}

void ThreadPool::worker_loop(int index) {
  for (;;) {
    const uint32_t seen = epoch_.load();
    while (help_any(index + 1)) {
    }
    if (index >= target_.load(std::memory_order_relaxed)) {
      std::lock_guard<std::mutex> lock(g_start_mutex);
      if (index >= target_.load(std::memory_order_relaxed)) {
        alive_[index] = false;
        return;
      }
    }
    if (spin_until([&] { return epoch_.load(std::memory_order_relaxed) != seen; })) continue;
    // Announced as a sleeper first: whoever bumps the epoch afterwards sees us and wakes us;
    // whoever bumped it before makes the wait return at once.
    sleepers_.fetch_add(1);
    futex_wait(epoch_, seen, nullptr);
    sleepers_.fetch_sub(1);
  }
}

bool ThreadPool::help_any(uint32_t number) {
  uint32_t active = active_.load(std::memory_order_acquire);
  bool helped = false;
  while (active != 0) {
    const int slot = __builtin_ctz(active);
    active &= active - 1;
    helped |= help(slots_[slot], number);
  }
  return helped;
}

/// Takes a chunk for thread `number`: the first one left of its own lane, else the last one of
/// another. A worker whose number is not below the region's thread count leaves it alone: f may
/// index scratch by get_thread_num().
bool ThreadPool::claim(Region& region, uint32_t number, uint32_t& chunk) {
  const uint32_t lanes = region.lane_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < lanes; ++i) {
    std::atomic<uint64_t>& word = region.lanes[(number + i) % lanes].ticket;
    uint64_t ticket = word.load(std::memory_order_relaxed);
    while (ticket_next(ticket) < ticket_end(ticket) && number < ticket_threads(ticket)) {
      if (!word.compare_exchange_weak(ticket, i == 0 ? ticket + kOneChunk : ticket - 1,
                                      std::memory_order_acq_rel, std::memory_order_relaxed))
        continue;
      chunk = i == 0 ? ticket_next(ticket) : ticket_end(ticket) - 1;
      return true;
    }
  }
  return false;
}

/// Claims and runs chunks until none is left; says whether it ran any.
bool ThreadPool::help(Region& region, uint32_t number) {
  const int owner = region.owner_cpu.load(std::memory_order_relaxed);
  // Before the first claim, since the move may take as long as the other CPU is busy.
  if (C10_UNLIKELY(owner >= 0 && owner == current_cpu()) && has_work(region)) leave_cpu(owner);
  bool helped = false;
  for (uint32_t chunk = 0; claim(region, number, chunk);) {
    helped = true;
    run_chunk(region, chunk);
    const uint32_t total = region.total;
    // After this line the region may be gone; the slot itself stays, so the look at the sleeper's
    // flag and a superfluous wake are harmless.
    if (region.done.fetch_add(1) + 1 == total && region.owner_sleeps.load()) {
      futex_wake(region.done, 1);
    }
  }
  return helped;
}

void ThreadPool::run_chunk(Region& region, uint32_t index) {
  if (region.cancelled.load(std::memory_order_acquire) &&
      index >= region.error_chunk.load(std::memory_order_relaxed)) {
    return;
  }
  const int64_t b = region.begin + static_cast<int64_t>(index) * region.chunk;
  const int64_t e = region.end - b <= region.chunk ? region.end : b + region.chunk;
  RegionScope scope(region);
  try {
    region.run(region.f, b, e);
  } catch (const c10::InterruptedError&) { // seen by an inner region of this chunk
    region.interrupted.store(true, std::memory_order_relaxed);
    record_error(region, 0);
  } catch (...) {
    record_error(region, index);
  }
}

void ThreadPool::record_error(Region& region, uint32_t index) {
  // Lower chunks are still run and report errors of their own: the lowest one is the same on every
  // run.
  std::lock_guard<std::mutex> lock(region.error_mutex);
  if (!region.error || index < region.error_chunk.load(std::memory_order_relaxed)) {
    region.error = std::current_exception();
    region.error_chunk.store(index, std::memory_order_relaxed);
  }
  region.cancelled.store(true, std::memory_order_release);
}

Region* ThreadPool::take_slot() {
  for (Region& region : slots_) {
    bool expected = false;
    if (!region.taken.load(std::memory_order_relaxed) &&
        region.taken.compare_exchange_strong(expected, true, std::memory_order_acquire)) {
      return &region;
    }
  }
  return nullptr;
}

void ThreadPool::announce(int wanted) {
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) futex_wake(epoch_, wanted);
}

bool ThreadPool::run(int64_t begin, int64_t end, int64_t chunk, ChunkFn f, const void* arg,
                     int threads) {
  ensure_workers(threads - 1);
  Region* region = take_slot();
  if (region == nullptr) return false;
  const int64_t range = end - begin;
  const uint32_t total = static_cast<uint32_t>(range / chunk + (range % chunk != 0));
  region->run = f;
  region->f = arg;
  region->begin = begin;
  region->end = end;
  region->chunk = chunk;
  region->owner_cpu.store(current_cpu(), std::memory_order_relaxed);
  region->cancelled.store(false, std::memory_order_relaxed);
  region->interrupted.store(false, std::memory_order_relaxed);
  region->done.store(0, std::memory_order_relaxed);
  region->total = total;
  const uint32_t lanes =
      std::min<uint32_t>({static_cast<uint32_t>(threads), total, Region::kLanes});
  region->lane_count.store(lanes, std::memory_order_relaxed);
  for (uint32_t i = 0; i < lanes; ++i) {
    const uint64_t first = uint64_t{total} * i / lanes, last = uint64_t{total} * (i + 1) / lanes;
    region->lanes[i].ticket.store(first << 32 | static_cast<uint64_t>(threads) << 16 | last,
                                  std::memory_order_release);
  }
  const uint32_t bit = 1u << (region - slots_);
  active_.fetch_or(bit, std::memory_order_release);
  announce(std::min<int>(total - 1, threads - 1));

  wait_done(*region, total, now_ms());

  active_.fetch_and(~bit, std::memory_order_relaxed);
  std::exception_ptr error = std::move(region->error);
  region->error = nullptr;
  region->taken.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
  return true;
}

/// The owner's share of the chunks, then the wait for those that others are executing. Polls for
/// interrupts on the way.
void ThreadPool::wait_done(Region& region, uint32_t total, int64_t start_ms) {
  const uint32_t generation = g_generation.load(std::memory_order_relaxed);
  int64_t polled = start_ms;
  const auto poll = [&] {
    const int64_t now = now_ms();
    if (now - polled < kPollMs) return;
    polled = now;
    if (region.cancelled.load(std::memory_order_relaxed) || !interrupt_requested()) return;
    std::lock_guard<std::mutex> lock(region.error_mutex);
    if (!region.error) {
      region.error = std::make_exception_ptr(c10::InterruptedError("interrupted"));
      region.error_chunk.store(0, std::memory_order_relaxed);
    }
    region.interrupted.store(true, std::memory_order_relaxed);
    region.cancelled.store(true, std::memory_order_release);
  };
  for (uint32_t chunk = 0; claim(region, 0, chunk);) {
    run_chunk(region, chunk);
    region.done.fetch_add(1);
    poll();
  }
  if (spin_until([&] { return region.done.load(std::memory_order_acquire) == total; })) return;
  const timespec timeout{0, kPollMs * 1'000'000};
  region.owner_sleeps.store(true);
  for (uint32_t seen = region.done.load(); seen != total; seen = region.done.load()) {
    if (generation != g_generation.load(std::memory_order_relaxed)) {
      // f forked and we are the child: the chunks that workers had begun will never end here.
      region.cancelled.store(true, std::memory_order_relaxed);
      throw c10::Error(
          "the process was forked inside a parallel region; the child cannot finish it");
    }
    futex_wait(region.done, seen, &timeout);
    poll();
  }
  region.owner_sleeps.store(false);
}

} // namespace at::detail
