// See module_base.cpp.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {
// Whether attributes of instances are read as object's are, and only then as the module's own
// parameters, buffers and modules.
bool has_module_lookup(PyTypeObject* type) noexcept;
bool init_module_base(PyObject* module);
} // namespace torch::python
