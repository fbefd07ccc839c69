// Functions of torch._C for devices of other packages.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {
bool init_backends(PyObject* module);
} // namespace torch::python
