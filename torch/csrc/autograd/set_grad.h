// Assigning a gradient from outside of a backward pass.
#pragma once
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {

// Makes `grad` (undefined: none) the gradient of t. Waits for a pass on another thread that is
// adding to the one there is.
TORCH_API void set_grad(const Tensor& t, Tensor grad);

} // namespace torch::autograd
