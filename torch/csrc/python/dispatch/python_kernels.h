// Operators defined, and kernels registered, from Python: the machinery under
// torch.library.Library.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_python_kernels(PyObject* module);

} // namespace torch::python
