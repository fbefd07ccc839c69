// The recorder behind torch.profiler: which operators ran, when, on what, as torch._C._profiler_*.
#pragma once
#include <torch/csrc/python/support.h>

namespace torch::python {

bool init_profiler(PyObject* module);

} // namespace torch::python
