// A tensor without its history, made so that whoever watches operators sees it.
#pragma once
#include <ATen/core/Tensor.h>

namespace torch::autograd {

// A tensor on the same storage, with the same version counter and no history. Where a dispatch mode
// or a class with __torch_dispatch__ follows the program this is the operator detach, run below
// autograd: a copy of the implementation that they know nothing of would be a tensor from nowhere
// to a trace, and would have lost the object of a subclass.
at::Tensor visible_detach(const at::Tensor& t);

} // namespace torch::autograd
