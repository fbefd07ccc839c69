// Conversions of dispatch keys and key sets between C++ and Python.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <c10/core/DispatchKeySet.h>

namespace torch::python {

// From a DispatchKey or its name; throws. Undefined for the key of a device without a backend.
c10::DispatchKey key_from(PyObject* o);
// Whether it is the key of a device without a backend: Note [Keys of absent devices].
bool is_absent_key(PyObject* o);
// From a DispatchKeySet, or a key; throws.
c10::DispatchKeySet key_set_from(PyObject* o);
PyObject* wrap(c10::DispatchKey key);
PyObject* wrap(c10::DispatchKeySet keys);

} // namespace torch::python
