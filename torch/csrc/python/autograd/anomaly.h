// Where each node was made: the Python stack at that moment, kept under anomaly mode and shown when
// the node's backward fails. The record is also the home of `grad_fn.metadata`.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <torch/csrc/autograd/node.h>

namespace torch::python {

// The dictionary of a node, made on first use; a new reference. Throws.
PyObject* anomaly_metadata(autograd::Node& node);

bool init_autograd_anomaly(PyObject* module);

} // namespace torch::python
