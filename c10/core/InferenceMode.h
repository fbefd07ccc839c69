// Tensors made under this guard are inference tensors: no history, no versions, never in a graph.
#pragma once
#include <c10/core/TensorImpl.h>

namespace c10 {

// What entering or leaving inference mode changes on this thread.
struct InferenceModeState {
  AutogradState autograd;
  uint64_t excluded = 0;
};
// Switches inference mode on or off for this thread; answers the state to go back to.
C10_API InferenceModeState enter_inference_mode(bool enabled);
C10_API void leave_inference_mode(const InferenceModeState& before) noexcept;
// Called before each switching on. The tensor library installs its check of writes there.
C10_API void set_inference_mode_hook(void (*hook)()) noexcept;

class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) : before_(enter_inference_mode(enabled)) {}
  ~InferenceMode() { leave_inference_mode(before_); }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  static bool is_enabled() { return tls_autograd_state.inference_mode; }

 private:
  InferenceModeState before_;
};

} // namespace c10
