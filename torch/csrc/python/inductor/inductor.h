// torch._C._inductor: traced graphs as compiled functions of a list of arguments.
#pragma once

#include <Python.h>

namespace torch::python {

bool init_inductor(PyObject* module);
bool init_aoti(PyObject* module); // torch._C._aoti

} // namespace torch::python
