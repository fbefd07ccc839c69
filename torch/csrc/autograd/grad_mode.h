// Whether operators record a graph on this thread, switched for the life of an object.
#pragma once
#include <c10/core/TensorImpl.h>

namespace torch::autograd {

class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : before_(c10::tls_autograd_state.grad_mode) {
    c10::tls_autograd_state.grad_mode = enabled;
  }
  ~AutoGradMode() { c10::tls_autograd_state.grad_mode = before_; }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool before_;
};

class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};

} // namespace torch::autograd
