// Process- and thread-wide state as functions of torch._C, and the hooks that make the C++ library
// live well inside a Python process (GIL, Ctrl-C).
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_runtime(PyObject* module);

} // namespace torch::python
