// torch.autograd.SavedTensor: one tensor that a node keeps for its backward pass, for hooks on it.
#pragma once
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

// The objects of what a field of a C++ node holds: a SavedTensor, or a tuple of them. Throws.
PyObject* raw_saved_field(autograd::Node& node, const autograd::SavedField& field);
// A tuple of the objects of what a Function saved. Throws RuntimeError after it was freed.
PyObject* raw_saved_of_context(PyObject* context);

// Adds the class to torch._C._autograd.
bool init_saved_tensor(PyObject* module);

} // namespace torch::python
