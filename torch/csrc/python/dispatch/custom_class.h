// Instances of classes registered by torch::class_, as Python objects: torch._C.ScriptObject, its
// bound methods, and torch._C.ScriptClass, which makes instances.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/CustomClass.h>

namespace torch::python {

bool is_script_object(PyObject* o);
// The instance; `o` is a ScriptObject.
const at::IValue& script_object_value(PyObject* o);
// A new reference to an object around the instance; throws.
PyRef wrap_script_object(const at::IValue& instance);
bool init_custom_classes(PyObject* module);

} // namespace torch::python
