// Exceptions of registration blocks (TORCH_LIBRARY) become exceptions of the import that loaded
// them.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_load_failures(PyObject* module);

} // namespace torch::python
