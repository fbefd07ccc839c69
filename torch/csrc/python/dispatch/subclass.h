// Construction of tensor subclasses from C++: _make_subclass, _make_wrapper_subclass and
// as_subclass.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

extern PyMethodDef subclass_methods[]; // of TensorBase; the first two are static

} // namespace torch::python
