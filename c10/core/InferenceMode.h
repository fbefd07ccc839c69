// Tensors made under this guard are inference tensors: no history, no versions, never in a graph.
#pragma once
#include <c10/core/TensorImpl.h>

namespace c10 {

class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) : before_(tls_autograd_state) {
    tls_autograd_state.inference_mode = enabled;
    tls_autograd_state.grad_mode = !enabled;
    tls_autograd_state.fw_grad_mode = !enabled;
  }
  ~InferenceMode() { tls_autograd_state = before_; }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  static bool is_enabled() { return tls_autograd_state.inference_mode; }

 private:
  AutogradState before_;
};

} // namespace c10
