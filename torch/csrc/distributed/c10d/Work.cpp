// Waiting in slices, so that Ctrl-C is heard, and callbacks outside of the lock.
#include <torch/csrc/distributed/c10d/Work.h>

#include <ATen/parallel/Parallel.h>
#include <torch/csrc/distributed/c10d/Error.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.h>

namespace c10d::engine {

using Clock = std::chrono::steady_clock;

Work::Work(OpType type, std::vector<at::Tensor> result, std::string description)
    : type_(type), result_(std::move(result)), description_(std::move(description)),
      record_(FlightRecorder::kNone), begun_(Clock::now()) {}
Work::Work(const Collective& call)
    : type_(call.type), result_(call.outputs), description_(call.describe()), record_(call.record),
      begun_(Clock::now()) {}
Work::~Work() = default;

bool Work::is_completed() {
  std::lock_guard lock(mutex_);
  return is_done_;
}
bool Work::is_success() {
  std::lock_guard lock(mutex_);
  return is_done_ && !error_;
}
std::exception_ptr Work::exception() {
  std::lock_guard lock(mutex_);
  return error_;
}
double Work::duration_ms() {
  std::lock_guard lock(mutex_);
  return std::chrono::duration<double, std::milli>((is_done_ ? ended_ : Clock::now()) - begun_)
      .count();
}

void Work::wait(Millis timeout) {
  std::unique_lock lock(mutex_);
  const bool forever = timeout <= Millis::zero();
  const auto deadline = Clock::now() + (forever ? Millis::zero() : timeout);
  while (!is_done_) {
    // In slices, so that Ctrl-C ends the wait.
    done_.wait_for(lock, Millis(100), [this] { return is_done_; });
    if (is_done_) break;
    if (!forever && Clock::now() >= deadline) {
      throw DistBackendError(c10::str("Operation timed out! wait() of ", description_,
                                      " took more "
                                      "than ",
                                      timeout.count(), "ms"));
    }
    lock.unlock();
    at::check_interrupt();
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
}

void Work::on_done(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!is_done_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

void Work::finish(std::exception_ptr error) {
  std::vector<std::function<void()>> callbacks;
  {
    std::lock_guard lock(mutex_);
    if (is_done_) return;
    is_done_ = true;
    FlightRecorder::get().end(record_, !error);
    error_ = std::move(error);
    ended_ = Clock::now();
    callbacks.swap(callbacks_);
    done_.notify_all();
  }
  for (auto& callback : callbacks) callback();
}

} // namespace c10d::engine
