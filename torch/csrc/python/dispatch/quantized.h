// What Python asks of quantized tensors besides operators. See quantized.cpp.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_quantized(PyObject* module);

} // namespace torch::python
