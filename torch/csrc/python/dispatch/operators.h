// Operators as Python callables: any operator of the dispatcher, found by name, called with a
// Python argument list checked against its schema.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Dispatcher.h>

namespace torch::python {

// The object torch.ops.<namespace>.<name>.<overload> of an operator, a new reference; throws.
PyRef overload_object(const at::OperatorEntry& op);

bool init_operators(PyObject* module);

} // namespace torch::python
