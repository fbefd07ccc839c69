// What the tensor type asks of autograd. The tensor's Python properties go through these functions
// only; the Python side of the engine (nodes, hooks, custom functions) plugs in through the
// pointers below.
#pragma once
#include <torch/csrc/python/support.h>

#include <torch/csrc/autograd/variable.h>

#include <ATen/core/Tensor.h>

namespace torch::python {

// The Python object of a node, a new reference or nullptr with the error set. Set when the autograd
// part of torch._C is initialised.
extern PyObject* (*node_object)(const c10::intrusive_ptr<autograd::Node>& node);

bool is_leaf(const at::Tensor& tensor);
// The accumulated gradient, undefined when there is none.
at::Tensor grad_of(const at::Tensor& tensor);
// Checks size, dtype and device against the tensor; an undefined gradient clears it. Throws.
void set_grad(const at::Tensor& tensor, const at::Tensor& grad);
// requires_grad of a leaf; throws for tensors that cannot have gradients and for non-leaves.
void set_requires_grad(const at::Tensor& tensor, bool value);
// What `tensor.grad_fn` shows: None for leaves. A new reference; throws.
PyObject* grad_fn_object(const at::Tensor& tensor);

} // namespace torch::python
