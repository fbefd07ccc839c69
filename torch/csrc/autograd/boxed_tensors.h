// What kernels that take a stack do with the tensors on it.
#pragma once
#include <vector>

#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <torch/csrc/autograd/node.h>

namespace torch::autograd {

// Appends the tensors of a value, also those of a list.
inline void add_tensors(std::vector<Tensor>& out, const at::IValue& value) {
  if (value.isTensor()) {
    out.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const Tensor& t : value.toTensorList()) out.push_back(t);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<Tensor>& t : value.toOptionalTensorList())
      if (t) out.push_back(*t);
  }
}

inline bool needs_grad(const std::vector<Tensor>& list) {
  for (const Tensor& t : list)
    if (t.defined() && t.requires_grad()) return true;
  return false;
}

inline bool is_differentiable(const Tensor& t) {
  return t.defined() && (t.is_floating_point() || t.is_complex());
}

inline bool is_written(const at::SchemaArgument& argument) {
  return argument.alias && argument.alias->is_write;
}

} // namespace torch::autograd
