// Single elements of tensors as numbers. CPU tensors without lazy conjugation are read in place;
// all others go through the operator `item`.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Tensor.h>

namespace torch::python {

// The element of a tensor with exactly one; RuntimeError otherwise.
c10::Scalar item_of(const at::Tensor& tensor);
// bool(tensor), with PyTorch's errors for zero and several elements.
bool truth_of(const at::Tensor& tensor);
// Nested lists of Python numbers; a number for a 0-d tensor.
PyObject* tensor_to_list(const at::Tensor& tensor);

} // namespace torch::python
