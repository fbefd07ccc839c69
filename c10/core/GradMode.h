// Whether operators of this thread record a graph, as a question and a switch without a scope. The
// scopes are in torch/csrc/autograd/grad_mode.h.
#pragma once
#include <c10/core/TensorImpl.h>

namespace c10 {

struct GradMode {
  static bool is_enabled() { return tls_autograd_state.grad_mode; }
  static void set_enabled(bool enabled) { tls_autograd_state.grad_mode = enabled; }
};

} // namespace c10
namespace at {
using c10::GradMode;
} // namespace at
