// Python objects of backward nodes (`tensor.grad_fn`) and of gradient edges.
//
// A node has at most one Python object at a time; the object owns the node, the node remembers the
// object. Nodes of torch.autograd.Function are the exception: there the node owns its context
// object, which is what Python sees as grad_fn.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <torch/csrc/autograd/node.h>

namespace torch::python {

// The object of a node; None for no node. Throws.
PyObject* wrap_node(const c10::intrusive_ptr<autograd::Node>& node);
// The node behind a grad_fn object; throws TypeError for anything else.
c10::intrusive_ptr<autograd::Node> node_of(PyObject* object);

// The edge of a tensor, or of a torch.autograd.graph.GradientEdge. Throws TypeError for other
// objects; an edge without function where the tensor does not require grad.
autograd::Edge edge_of(PyObject* object);

// Members shared by the objects of C++ nodes and by the contexts of Python functions, which differ
// only in how they find their node.
PyObject* node_next_functions(autograd::Node& node);
PyObject* node_metadata(autograd::Node& node);
PyObject* node_register_hook(autograd::Node& node, PyObject* hook);
PyObject* node_register_prehook(autograd::Node& node, PyObject* hook);
PyObject* node_input_metadata(autograd::Node& node);

// For the garbage collector: visits the contexts of Functions in the history that this tensor alone
// keeps alive, whose attributes may lead back to it (ctx.output = output).
int traverse_history(const at::Tensor& tensor, visitproc visit, void* arg);

bool init_autograd_node(PyObject* module);

} // namespace torch::python
