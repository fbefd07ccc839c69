// Small helpers over the C API that are not worth inlining.
#include <torch/csrc/python/runtime/support.h>

#include <cstring>

namespace torch::python {

std::string_view utf8(PyObject* unicode) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(unicode, &size);
  if (!data) throw python_error();
  return {data, static_cast<size_t>(size)};
}

std::string text_of(PyObject* o) { return std::string(utf8(checked(PyObject_Str(o)).get())); }

std::string repr_of(PyObject* o) { return std::string(utf8(checked(PyObject_Repr(o)).get())); }

PyTypeObject type_object(const char* name) {
  const PyVarObject head = {PyObject_HEAD_INIT(nullptr) 0};
  PyTypeObject type{};
  type.ob_base = head;
  type.tp_name = name;
  return type;
}

bool add_object(PyObject* module, const char* name, PyObject* value) {
  PyRef owned(value);
  return value && PyObject_SetAttrString(module, name, value) == 0;
}

namespace {
// Note [Methods called on the class]
// `Tensor.size()`, a method called on the class without an instance, is a TypeError. CPython 3.11,
// once a call site has been specialised for fast methods, looks at the missing instance's type
// before it counts the arguments and reads a dead stack slot. It does so only for methods whose
// flags are exactly those of a fast call: one more flag that means nothing here (COEXIST decides
// between equal names) keeps call sites on the general path, which checks.
void keep_general(PyMethodDef* def) {
  if (def->ml_flags & METH_FASTCALL) def->ml_flags |= METH_COEXIST;
}
} // namespace

PyObject* new_method(PyTypeObject* type, PyMethodDef* def) {
  keep_general(def);
  return PyDescr_NewMethod(type, def);
}

bool add_type(PyObject* module, PyTypeObject* type) {
  for (PyMethodDef* def = type->tp_methods; def && def->ml_name; ++def) keep_general(def);
  if (PyType_Ready(type) < 0) return false;
  const char* dot = std::strrchr(type->tp_name, '.');
  auto* object = reinterpret_cast<PyObject*>(type);
  Py_INCREF(object);
  return add_object(module, dot ? dot + 1 : type->tp_name, object);
}

PyObject* cached_attribute(PyObject*& slot, const char* module, const char* name) {
  if (!slot) {
    PyRef owner(PyImport_ImportModule(module));
    if (owner) slot = PyObject_GetAttrString(owner.get(), name);
  }
  return slot;
}

} // namespace torch::python
