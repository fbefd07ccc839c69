// A value that some thread will set, with callbacks: c10::ivalue::Future, as backends of process
// groups return it. Any thread may wait, ask and add callbacks; the value or the error is set once.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/util/intrusive_ptr.h>

namespace c10::ivalue {

class Future final : public c10::intrusive_ptr_target {
 public:
  explicit Future(TypePtr type, const std::vector<c10::Device>& /*devices*/ = {})
      : type_(std::move(type)) {}

  void markCompleted(::at::IValue value) { settle(std::move(value), nullptr); }
  void markCompleted() { settle(::at::IValue(), nullptr); }
  void setError(std::exception_ptr error) {
    TORCH_CHECK(error != nullptr, "Future::setError: the error is a null pointer");
    settle(::at::IValue(), std::move(error));
  }

  bool completed() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_done_;
  }
  bool hasValue() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_done_ && !error_;
  }
  bool hasError() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_done_ && error_;
  }
  std::exception_ptr exception_ptr() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return error_;
  }
  // Returns when there is a value or an error; waitAndThrow() throws the error.
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return is_done_; });
  }
  void waitAndThrow() {
    wait();
    if (error_) std::rethrow_exception(error_);
  }
  // The value. Throws the error, and where there is neither yet.
  ::at::IValue value() const {
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(is_done_, "Future::value: the future is not completed yet");
    if (error_) std::rethrow_exception(error_);
    return value_;
  }
  ::at::IValue constValue() const { return value(); }
  const TypePtr& elementType() const { return type_; }

  // Called when done, at once where it is so already; on the thread that sets the value. What it
  // throws goes to that thread.
  void addCallback(std::function<void(Future&)> callback) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!is_done_) {
        callbacks_.push_back(std::move(callback));
        return;
      }
    }
    callback(*this);
  }
  // A future of what `callback` makes of this one.
  c10::intrusive_ptr<Future> then(std::function<::at::IValue(Future&)> callback, TypePtr type) {
    auto child = c10::make_intrusive<Future>(std::move(type));
    addCallback([child, callback = std::move(callback)](Future& parent) {
      ::at::IValue value;
      try {
        value = callback(parent);
      } catch (...) {
        child->setError(std::current_exception());
        return;
      }
      child->markCompleted(std::move(value));
    });
    return child;
  }

 private:
  void settle(::at::IValue value, std::exception_ptr error) {
    std::vector<std::function<void(Future&)>> callbacks;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      TORCH_CHECK(!is_done_, "Attempting to mark a completed Future as complete again");
      value_ = std::move(value);
      error_ = std::move(error);
      is_done_ = true;
      callbacks.swap(callbacks_);
      done_.notify_all();
    }
    for (auto& callback : callbacks) callback(*this);
  }

  const TypePtr type_;
  mutable std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  ::at::IValue value_;
  std::exception_ptr error_;
  std::vector<std::function<void(Future&)>> callbacks_;
};

} // namespace c10::ivalue
