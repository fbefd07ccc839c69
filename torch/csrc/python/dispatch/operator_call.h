// Operators of the dispatcher as Python callables: one overload (torch._C._Operator, the base of
// torch._ops.OpOverload) and all overloads of a name (torch._C._OperatorPacket, the base of
// torch._ops.OpOverloadPacket). Both are called without an argument tuple.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Dispatcher.h>

namespace torch::python {

// A new plain torch._C._Operator; throws.
PyObject* new_operator(const at::OperatorEntry& op);

bool init_operator_types(PyObject* module);

} // namespace torch::python
