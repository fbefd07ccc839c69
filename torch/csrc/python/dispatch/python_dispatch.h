// __torch_dispatch__: operators on tensor subclasses that define it, and under TorchDispatchModes,
// call into Python below autograd.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_python_dispatch(PyObject* module);

} // namespace torch::python
