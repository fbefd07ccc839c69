// torch._C._aot: what torch._functorch asks of C++ when it divides and runs joint graphs.

#pragma once

#include <Python.h>

namespace torch::python {

bool init_aot(PyObject* module);
bool init_trained(PyObject* module); // torch._C._aot.TrainedFunction

} // namespace torch::python
