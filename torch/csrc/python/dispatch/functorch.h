// The levels and wrapper tensors of function transforms as torch._C._functorch.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_functorch(PyObject* module);

} // namespace torch::python
