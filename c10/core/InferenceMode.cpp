// One implementation of inference mode for the guard of C++ and the context managers of Python.
//
// Note [Keys of inference mode]
// Operators skip the autograd keys, and the check that keeps inference tensors from being written.
// ADInplaceOrView stays: an in-place write to a normal tensor counts as one in inference mode too.
#include <c10/core/InferenceMode.h>

#include <atomic>

namespace c10 {
namespace {
std::atomic<void (*)()> inference_hook{nullptr};
constexpr DispatchKeySet kSkipped = kAutogradKeys.add(DispatchKey::InferenceCheck);
} // namespace

void set_inference_mode_hook(void (*hook)()) noexcept { inference_hook = hook; }

InferenceModeState enter_inference_mode(bool enabled) {
  const InferenceModeState before{tls_autograd_state, tls_dispatch_keys.excluded};
  if (enabled)
    if (void (*hook)() = inference_hook) hook();
  tls_autograd_state.inference_mode = enabled;
  tls_autograd_state.grad_mode = tls_autograd_state.fw_grad_mode = !enabled;
  if (enabled)
    tls_dispatch_keys.excluded |= kSkipped.raw();
  else
    tls_dispatch_keys.excluded &= ~kSkipped.raw();
  return before;
}

void leave_inference_mode(const InferenceModeState& before) noexcept {
  tls_autograd_state = before.autograd;
  tls_dispatch_keys.excluded = before.excluded;
}

} // namespace c10
