// The scheduler of the emulated threads, and the net that catches a kernel's bad address. A fiber
// is a stack and a saved stack pointer; on x86-64 the switch is a dozen instructions, elsewhere the
// C library's.
#include "Fibers.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace emulator {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr size_t kStack = 128 * 1024;
constexpr size_t kShared = 256 * 1024;

enum class Wait : unsigned char { kRun, kBlock, kWarp, kDone };

struct Fiber {
  Wait wait = Wait::kRun;
  unsigned mask = 0;
  CressetEmulatorDim index{};
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t context;
#endif
};

struct Scheduler {
  char* stacks = nullptr;
  unsigned char* shared = nullptr;
  unsigned char slots[kMaxThreads][16];
  Fiber fibers[kMaxThreads];
  CressetEmulatorThread now{};
  unsigned running = 0;
  const Launch* launch = nullptr;
  const char* why = nullptr;
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t context;
#endif
};

Scheduler* scheduler = nullptr;
thread_local bool in_kernel = false;
thread_local sigjmp_buf escape;
struct sigaction previous[2];

} // namespace

#if defined(__x86_64__)
// Saves what a call must keep on the old stack, and continues on the new one.
extern "C" void cresset_emulator_switch(void** save, void* load);
asm(R"(
  .text
  .globl cresset_emulator_switch
  .hidden cresset_emulator_switch
  .type cresset_emulator_switch, @function
cresset_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cresset_emulator_switch, .-cresset_emulator_switch
)");
#endif

namespace {

void to_scheduler(Fiber& fiber) {
#if defined(__x86_64__)
  cresset_emulator_switch(&fiber.sp, scheduler->sp);
#else
  swapcontext(&fiber.context, &scheduler->context);
#endif
}

void to_fiber(Fiber& fiber) {
#if defined(__x86_64__)
  cresset_emulator_switch(&scheduler->sp, fiber.sp);
#else
  swapcontext(&scheduler->context, &fiber.context);
#endif
}

void fiber_main() {
  Scheduler& s = *scheduler;
  s.launch->call(s.launch->args);
  s.fibers[s.running].wait = Wait::kDone;
  to_scheduler(s.fibers[s.running]);
  __builtin_unreachable();
}

void start(Fiber& fiber, unsigned i) {
  char* stack = scheduler->stacks + i * kStack;
  fiber.wait = Wait::kRun;
#if defined(__x86_64__)
  uintptr_t* top = reinterpret_cast<uintptr_t*>(stack + kStack);
  *--top = 0; // keeps the entry's stack as after a call
  *--top = reinterpret_cast<uintptr_t>(&fiber_main);
  top -= 6;
  std::memset(top, 0, 6 * sizeof(*top));
  fiber.sp = top;
#else
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack;
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, fiber_main, 0);
#endif
}

void wait(Wait kind, unsigned mask) {
  Fiber& self = scheduler->fibers[scheduler->running];
  self.wait = kind;
  self.mask = mask;
  to_scheduler(self);
}

void block_barrier() { wait(Wait::kBlock, 0); }
void warp_barrier(unsigned mask) { wait(Wait::kWarp, mask); }

void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
}

void leave_kernel(int code) { siglongjmp(escape, code); }
void trap() { leave_kernel(2); }

void on_fault(int signal, siginfo_t*, void*) {
  if (in_kernel) {
    leave_kernel(1);
  }
  sigaction(signal, &previous[signal == SIGBUS], nullptr); // not ours: let it happen again
}

class FaultNet {
 public:
  FaultNet() {
    static thread_local std::vector<char> stack(64 * 1024);
    stack_t alternate{};
    alternate.ss_sp = stack.data();
    alternate.ss_size = stack.size();
    sigaltstack(&alternate, &old_stack_);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &previous[0]);
    sigaction(SIGBUS, &action, &previous[1]);
    in_kernel = true;
  }
  ~FaultNet() {
    in_kernel = false;
    sigaction(SIGSEGV, &previous[0], nullptr);
    sigaction(SIGBUS, &previous[1], nullptr);
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  stack_t old_stack_{};
};

Scheduler& make_scheduler() {
  if (!scheduler) {
    scheduler = new Scheduler;
    void* memory = mmap(nullptr, kMaxThreads * kStack + kShared, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("emulator: stacks");
      std::abort();
    }
    scheduler->stacks = static_cast<char*>(memory);
    scheduler->shared = static_cast<unsigned char*>(memory) + kMaxThreads * kStack;
    CressetEmulatorThread& now = scheduler->now;
    now.shared = scheduler->shared;
    now.slots = scheduler->slots;
    now.barrier = block_barrier;
    now.warp_barrier = warp_barrier;
    now.print = print;
    now.trap = trap;
  }
  return *scheduler;
}

// Lets the lanes of a warp go on whose whole mask has arrived. Lanes that do not exist are ignored;
// one that has ended while others wait for it is a mistake that ends as a deadlock.
bool release_warp(Scheduler& s, unsigned first, unsigned threads) {
  const unsigned lanes = threads - first < 32 ? threads - first : 32;
  const unsigned exist = lanes == 32 ? ~0u : (1u << lanes) - 1;
  bool any = false;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Fiber& f = s.fibers[first + lane];
    if (f.wait != Wait::kWarp) {
      continue;
    }
    const unsigned mask = f.mask & exist;
    bool all = (mask >> lane) & 1;
    for (unsigned other = 0; other < lanes && all; ++other) {
      const Fiber& g = s.fibers[first + other];
      all = !((mask >> other) & 1) || (g.wait == Wait::kWarp && (g.mask & exist) == mask);
    }
    for (unsigned other = 0; other < lanes && all; ++other) {
      if ((mask >> other) & 1) {
        s.fibers[first + other].wait = Wait::kRun;
        any = true;
      }
    }
  }
  return any;
}

void resume(Scheduler& s, unsigned i) {
  Fiber& f = s.fibers[i];
  s.running = i;
  s.now.linear = i;
  s.now.thread = f.index;
  to_fiber(f);
}

// One block to its end.
Outcome run_block(Scheduler& s, unsigned threads, bool reverse) {
  for (unsigned i = 0; i < threads; ++i) {
    start(s.fibers[i], i);
  }
  for (;;) {
    bool progress = false;
    for (unsigned w = 0; w < threads; w += 32) {
      const unsigned first = reverse ? (threads - 1 - w) / 32 * 32 : w;
      const unsigned lanes = threads - first < 32 ? threads - first : 32;
      do {
        for (unsigned k = 0; k < lanes; ++k) {
          const unsigned i = first + (reverse ? lanes - 1 - k : k);
          if (s.fibers[i].wait == Wait::kRun) {
            progress = true;
            resume(s, i);
          }
        }
      } while (release_warp(s, first, threads));
    }
    unsigned waiting = 0, done = 0;
    for (unsigned i = 0; i < threads; ++i) {
      waiting += s.fibers[i].wait == Wait::kBlock;
      done += s.fibers[i].wait == Wait::kDone;
    }
    if (done == threads) {
      return Outcome::kDone;
    }
    if (waiting == threads) {
      for (unsigned i = 0; i < threads; ++i) {
        s.fibers[i].wait = Wait::kRun;
      }
    } else if (!progress) {
      s.why = waiting ? "some threads of a block wait at __syncthreads, others have ended or wait "
                        "elsewhere"
                      : "the lanes named in the mask of a warp operation do not all arrive at it";
      return Outcome::kDeadlock;
    }
  }
}

Outcome run_grid(Scheduler& s, const Launch& launch, bool reverse) {
  const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  for (unsigned i = 0; i < threads; ++i) {
    s.fibers[i].index = {i % launch.block[0], i / launch.block[0] % launch.block[1],
                         i / (launch.block[0] * launch.block[1])};
  }
  for (unsigned z = 0; z < launch.grid[2]; ++z) {
    for (unsigned y = 0; y < launch.grid[1]; ++y) {
      for (unsigned x = 0; x < launch.grid[0]; ++x) {
        s.now.block = {x, y, z};
        std::memset(s.shared, 0xff, launch.shared_bytes);
        const Outcome outcome = run_block(s, threads, reverse);
        if (outcome != Outcome::kDone) {
          return outcome;
        }
      }
    }
  }
  return Outcome::kDone;
}

} // namespace

Outcome run_blocks(const Launch& launch, CressetEmulatorThread*& program_state, const char** why) {
  Scheduler& s = make_scheduler();
  s.launch = &launch;
  s.now.block_dim = {launch.block[0], launch.block[1], launch.block[2]};
  s.now.grid_dim = {launch.grid[0], launch.grid[1], launch.grid[2]};
  s.now.threads = launch.block[0] * launch.block[1] * launch.block[2];
  program_state = &s.now;
  const char* order = std::getenv("CRESSET_EMULATOR_ORDER");
  const bool reverse = order && std::strcmp(order, "reverse") == 0;
  FaultNet net;
  Outcome outcome;
  if (const int code = sigsetjmp(escape, 1)) {
    outcome = code == 1 ? Outcome::kFault : Outcome::kTrap;
    s.why = code == 1 ? "the kernel touched memory its device may not" : "the kernel trapped";
  } else {
    outcome = run_grid(s, launch, reverse);
  }
  *why = outcome == Outcome::kDone ? nullptr : s.why;
  return outcome;
}

} // namespace emulator
