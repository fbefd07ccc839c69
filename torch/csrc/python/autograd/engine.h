// The engine as Python calls it: torch._C._ImperativeEngine, and Tensor.backward.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

extern PyMethodDef tensor_autograd_methods[];

bool init_autograd_engine(PyObject* module);

} // namespace torch::python
