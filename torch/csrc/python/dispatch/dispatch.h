// The dispatcher seen from Python: keys, guards, operators as callables, kernels written in Python,
// and __torch_dispatch__.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_dispatch(PyObject* module);

} // namespace torch::python
