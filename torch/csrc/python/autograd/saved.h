// Hooks on tensors saved for the backward pass.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_autograd_saved(PyObject* module);

} // namespace torch::python
