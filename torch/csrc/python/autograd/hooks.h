// Hooks written in Python, as the engine's hook classes. All hooks of one place (a tensor, a node)
// are one C++ hook over one ordered dictionary, so that removing an entry is all a handle has to
// do.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <torch/csrc/autograd/variable.h>

namespace torch::python {

// Hooks on a tensor's gradient: `hooks` is the dictionary that Tensor._backward_hooks shows.
std::shared_ptr<autograd::TensorHook> make_gradient_hook(PyObject* hooks);
// Hooks called with the leaf after its gradient was accumulated.
std::shared_ptr<autograd::TensorHook> make_post_accumulate_hook(PyObject* hooks);

// Adds a hook to a node's dictionary of pre- or post-hooks; returns a RemovableHandle. Throws.
PyObject* add_node_hook(autograd::Node& node, PyObject* hook, bool before);

// Puts what `_backward_hooks` (or `_post_accumulate_grad_hooks`) is set to in force; null clears.
// Throws.
void set_tensor_hooks(const at::Tensor& tensor, PyObject* hooks);
void set_post_accumulate_hooks(const at::Tensor& tensor, PyObject* hooks);

// For the garbage collector: visits the dictionaries of hooks that a tensor alone keeps alive, and
// drops them. A hook often refers to its own tensor.
int traverse_tensor_hooks(const at::Tensor& tensor, visitproc visit, void* arg);
void clear_tensor_hooks(const at::Tensor& tensor) noexcept;

// Gradients as a tuple, None for those that are undefined. Throws.
PyRef gradients_tuple(const autograd::TensorVec& grads);

} // namespace torch::python
