// Tensor.apply_, map_ and map2_: a Python function on every element, in place.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

extern PyMethodDef tensor_apply_methods[];

} // namespace torch::python
