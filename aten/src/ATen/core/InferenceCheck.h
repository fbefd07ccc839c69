// Inference tensors must not be written where gradients could be recorded.
#pragma once
#include <c10/core/DispatchKeySet.h>
#include <c10/macros/Macros.h>

namespace at {

// Carried by inference tensors only; excluded inside inference mode, where they may be written.
constexpr c10::DispatchKey kInferenceKey = c10::DispatchKey::InferenceCheck;

// Installs the check. Called when inference mode is first entered, so that programs without it have
// none.
TORCH_API void enable_inference_check();

} // namespace at
