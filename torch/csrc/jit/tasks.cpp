// Threads that run forked calls. They start with the first fork and end with the process: a thread
// that holds the interpreter's lock of another language cannot be joined at exit.
#include <torch/csrc/jit/tasks.h>

#include <ATen/Parallel.h>
#include <c10/core/TensorImpl.h>
#include <deque>
#include <thread>
#include <torch/csrc/autograd/engine.h>

namespace torch::jit {

namespace {

using autograd::thread_hooks;

struct Pool {
  std::mutex mutex;
  std::condition_variable wanted;
  std::deque<c10::intrusive_ptr<Future>> queue;
  int threads = 0, idle = 0;

  void add(c10::intrusive_ptr<Future> future) {
    std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(future));
    if (idle < static_cast<int>(queue.size()) && threads < at::get_num_interop_threads()) {
      ++threads;
      std::thread([this] { serve(); }).detach();
    }
    wanted.notify_one();
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      ++idle;
      wanted.wait(lock, [this] { return !queue.empty(); });
      --idle;
      c10::intrusive_ptr<Future> next = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      next->run();
      next.reset();
      lock.lock();
    }
  }
};

Pool& pool() {
  static auto* made = new Pool; // its threads outlive other statics
  return *made;
}

// Gives up the lock of another language for the scope, so that the thread that is waited for can
// have it.
struct Unlocked {
  Unlocked() : released(thread_hooks.release ? thread_hooks.release() : nullptr) {}
  ~Unlocked() {
    if (released) thread_hooks.acquire(released);
  }
  void* released;
};

struct SavedState {
  c10::AutogradState autograd = c10::tls_autograd_state;
  c10::LocalDispatchKeySet keys = c10::tls_dispatch_keys;
  void apply() const {
    c10::tls_autograd_state = autograd;
    c10::tls_dispatch_keys = keys;
  }
};

} // namespace

Future::~Future() {
  if (carried_) thread_hooks.drop(carried_);
}

void Future::run() {
  std::function<IValue()> work;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::Waiting || !work_) return;
    state_ = State::Running;
    work = std::move(work_);
  }
  void* held = thread_hooks.enter ? thread_hooks.enter() : nullptr;
  IValue value;
  std::exception_ptr error;
  try {
    value = work();
  } catch (...) {
    error = std::current_exception();
  }
  work = nullptr; // its arguments go while the lock is held
  void* carried = held ? thread_hooks.leave(held) : nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  value_ = std::move(value);
  error_ = error;
  carried_ = carried;
  state_ = State::Done;
  ready_.notify_all();
}

IValue Future::wait() {
  run();
  std::exception_ptr error;
  void* carried = nullptr;
  {
    Unlocked others;
    std::unique_lock<std::mutex> lock(mutex_);
    ready_.wait(lock, [this] { return state_ == State::Done; });
    error = error_;
    std::swap(carried, carried_);
  }
  if (carried) thread_hooks.resume(carried);
  if (error) std::rethrow_exception(error);
  return value_;
}

c10::intrusive_ptr<Future> launch(std::function<IValue()> work) {
  const SavedState state;
  auto future =
      c10::make_intrusive<Future>(std::function<IValue()>([state, work = std::move(work)] {
        const SavedState before;
        state.apply();
        try {
          IValue out = work();
          before.apply();
          return out;
        } catch (...) {
          before.apply();
          throw;
        }
      }));
  if (thread_hooks.plain && !thread_hooks.plain()) {
    future->run();
  } else {
    pool().add(future);
  }
  return future;
}

} // namespace torch::jit

void at::launch(std::function<void()> task) {
  torch::jit::launch([task = std::move(task)] {
    task();
    return at::IValue();
  });
}
