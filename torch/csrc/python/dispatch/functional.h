// Functional tensors of the key Functionalize, for Python.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_functional(PyObject* module);

} // namespace torch::python
