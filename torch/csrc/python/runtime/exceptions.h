// The Python exception types of this library and the bridge from C++ errors and warnings to them.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

extern PyObject* OutOfMemoryErrorType; // torch.OutOfMemoryError, a RuntimeError
extern PyObject* LinAlgErrorType;      // torch.linalg.LinAlgError, a RuntimeError

// Creates the types and installs the warning handler.
bool init_exceptions(PyObject* module);

} // namespace torch::python
