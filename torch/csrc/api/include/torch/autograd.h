// torch::autograd.
#pragma once
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>

namespace torch::autograd {

// Whether one of the tensors needs a gradient. Undefined ones do not.
inline bool any_variable_requires_grad(at::TensorList variables) {
  for (const at::Tensor& each : variables)
    if (each.defined() && each.requires_grad()) return true;
  return false;
}

// A new leaf on the data of a tensor.
inline Variable make_variable(const at::Tensor& data, bool requires_grad = false, bool = true) {
  if (!data.defined()) return {};
  at::Tensor leaf = data.variable_data();
  leaf.set_requires_grad(requires_grad);
  return leaf;
}

} // namespace torch::autograd
