// Tensors with tangents: torch.autograd.forward_ad.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_autograd_forward(PyObject* module);

} // namespace torch::python
