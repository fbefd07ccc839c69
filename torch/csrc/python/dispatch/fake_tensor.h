// Fake tensors and FakeTensorMode as Python sees them: functions of torch._C that
// torch/_subclasses/fake_tensor.py is written with.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

// The class of fake tensors, from when its module is imported; null before.
extern PyTypeObject* FakeTensorClass;

bool init_fake_tensor(PyObject* module);

} // namespace torch::python
