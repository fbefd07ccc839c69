// What the tensor type asks of autograd. The tensor's Python properties go through these functions
// only.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <torch/csrc/autograd/variable.h>

#include <ATen/core/Tensor.h>

namespace torch::python {

bool is_leaf(const at::Tensor& tensor);
// The accumulated gradient, undefined when there is none.
at::Tensor grad_of(const at::Tensor& tensor);
// Checks size, dtype and device against the tensor; an undefined gradient clears it. Throws.
void set_grad(const at::Tensor& tensor, const at::Tensor& grad);
// requires_grad of a leaf; throws for tensors that cannot have gradients and for non-leaves.
void set_requires_grad(const at::Tensor& tensor, bool value);
// A graph built from now on accumulates by the tensor's new shape and dtype.
void forget_accumulator(const at::Tensor& tensor);
// What `tensor.grad_fn` shows: None for leaves. A new reference; throws.
PyObject* grad_fn_object(const at::Tensor& tensor);

} // namespace torch::python
