// x[key] and x[key] = value: the translation of Python index expressions into views (select, slice,
// unsqueeze) and, where a key holds tensors, into the operators index and index_put_.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

// Slots of the tensor type. `self` must be a tensor. nullptr or -1 with the error set on failure.
PyObject* tensor_getitem(PyObject* self, PyObject* key);
int tensor_setitem(PyObject* self, PyObject* key, PyObject* value);

bool init_indexing(PyObject* module);

} // namespace torch::python
