// The recorder behind torch.profiler: which operators ran, when, on what, as torch._C._profiler_*.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_profiler(PyObject* module);
// Whether the operators of this thread are being recorded.
bool is_profiling() noexcept;

} // namespace torch::python
