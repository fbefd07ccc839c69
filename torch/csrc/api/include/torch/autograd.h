// torch::autograd.
#pragma once
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace torch::autograd {

// Whether one of the tensors needs a gradient. Undefined ones do not.
inline bool any_variable_requires_grad(at::TensorList variables) {
  for (const at::Tensor& each : variables)
    if (each.defined() && each.requires_grad()) return true;
  return false;
}

} // namespace torch::autograd
