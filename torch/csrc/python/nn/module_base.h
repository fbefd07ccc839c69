// See module_base.cpp.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {
bool init_module_base(PyObject* module);
}
