// torch._C.FunctionSchema and its parts, as Python reads them.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/FunctionSchema.h>

namespace torch::python {

// A Python object with a copy of the schema; throws.
PyObject* new_schema(const at::FunctionSchema& schema);
bool init_schema_types(PyObject* module);

} // namespace torch::python
