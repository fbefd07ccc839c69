// fork and wait: calls of scripted functions on other threads. Whoever waits for work that no
// thread has begun runs it itself, so that waits inside of forked work never starve.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>

#include <torch/csrc/jit/values.h>

namespace torch::jit {

struct TORCH_API Future final : Boxed {
  static constexpr Kind kKind = Kind::Future;
  Future() : Boxed(kKind) {}
  explicit Future(IValue v) : Boxed(kKind), value_(std::move(v)), state_(State::Done) {}
  explicit Future(std::function<IValue()> work)
      : Boxed(kKind), work_(std::move(work)), state_(State::Waiting) {}
  ~Future() override;

  // Runs the work unless another thread has begun it.
  void run();
  // The result, as soon as it is there; throws what the work threw.
  IValue wait();

 private:
  enum class State : uint8_t { Waiting, Running, Done };
  std::mutex mutex_;
  std::condition_variable ready_;
  std::function<IValue()> work_;
  IValue value_;
  std::exception_ptr error_;
  void* carried_ = nullptr; // the error of the other language that `error_` stands for
  State state_ = State::Waiting;
};

// A future of `work`, which a thread of the inter-op pool runs with the gradient mode and dispatch
// keys of the caller. Work that only this thread can do (it has modes of its own) is done at once.
TORCH_API c10::intrusive_ptr<Future> launch(std::function<IValue()> work);

} // namespace torch::jit
