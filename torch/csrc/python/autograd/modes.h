// The context managers of torch.autograd.grad_mode, in C++ because loops enter them for every step.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_autograd_modes(PyObject* module);

} // namespace torch::python
