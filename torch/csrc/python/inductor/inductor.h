// torch._C._inductor: traced graphs as compiled functions of a list of arguments.
#pragma once

#include <Python.h>

namespace torch::python {

bool init_inductor(PyObject* module);

} // namespace torch::python
