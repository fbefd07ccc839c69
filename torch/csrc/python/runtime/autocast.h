// The functions behind torch.amp: the thread's autocast state by device type.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_autocast(PyObject* module);

} // namespace torch::python
