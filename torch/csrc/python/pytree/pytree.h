// Trees of containers: flattening, mapping and rebuilding for torch.utils._pytree. See pytree.cpp.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

// Adds torch._C._pytree.
bool init_pytree(PyObject* module);

} // namespace torch::python
