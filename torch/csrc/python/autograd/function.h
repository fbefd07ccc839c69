// torch.autograd.Function in C++: the context object, the node that calls backward, and `apply`.
//
// Note [Contexts and nodes]
// The context (`ctx`) is what Python shows as grad_fn. The node owns the context; the context knows
// its node only while that lives. What save_for_backward keeps lies in the context as saved
// variables, which the node frees after its backward.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <torch/csrc/autograd/node.h>

namespace torch::python {

// The context behind a node made by a Function, borrowed; null for other nodes.
PyObject* context_of_node(const autograd::Node& node);
bool is_function_context(PyObject* object);
bool is_function_context_type(PyObject* type);
// Null when the context has no node (any more).
autograd::Node* node_of_context(PyObject* context);

bool init_autograd_function(PyObject* module);

} // namespace torch::python
