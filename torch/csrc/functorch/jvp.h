// The forward-mode level of function transforms. See jvp.cpp.
#pragma once
#include <ATen/functorch/Level.h>

namespace torch::functorch {

// Makes jvp levels possible; to be called before the first is pushed.
TORCH_API void enable_jvp();

} // namespace torch::functorch
