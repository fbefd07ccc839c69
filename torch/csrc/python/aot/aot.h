// torch._C._aot: what torch._functorch asks of C++ when it divides and runs joint graphs.

#pragma once

#include <Python.h>

#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

bool init_aot(PyObject* module);
bool init_trained(PyObject* module); // torch._C._aot.TrainedFunction
bool init_plain(PyObject* module);   // torch._C._aot.UntrainedFunction and FlatFunction

// The plan that a callable is, or leads to by an attribute since its first call; null while there
// is none.
PyRef plan_behind(PyObject* callable, const char* attribute);

} // namespace torch::python
