// torch.dtype: one immortal object per element type, named after its attribute of torch. The second
// names (torch.float for torch.float32, ...) are set on the module as the same objects.
#include <torch/csrc/python/types/types.h>

#include <string>

namespace torch::python {

PyTypeObject DtypeType = type_object("torch.dtype");

namespace {

PyDtype* table[c10::NumScalarTypes];

PyDtype* self_of(PyObject* o) { return reinterpret_cast<PyDtype*>(o); }

PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", self_of(self)->name);
}
// Pickles as the name of an attribute of module torch.
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(self_of(self)->name);
}
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(c10::toComplexType(self_of(self)->value)); });
}
PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(c10::toRealValueType(self_of(self)->value)); });
}
PyObject* dtype_is_floating_point(PyObject* self, void*) {
  return new_bool(c10::isFloatingType(self_of(self)->value));
}
PyObject* dtype_is_complex(PyObject* self, void*) {
  return new_bool(c10::isComplexType(self_of(self)->value));
}
PyObject* dtype_is_signed(PyObject* self, void*) {
  return new_bool(c10::isSignedType(self_of(self)->value));
}
PyObject* dtype_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(c10::elementSize(self_of(self)->value));
}

PyMethodDef methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype of the same precision."},
    {"to_real", dtype_to_real, METH_NOARGS, "The real dtype of the same precision."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"is_floating_point", dtype_is_floating_point, nullptr, nullptr, nullptr},
    {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
    {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

bool add_dtype(PyObject* module, c10::ScalarType type) {
  const c10::ScalarTypeInfo& entry = c10::info(type);
  PyDtype* object = PyObject_New(PyDtype, &DtypeType);
  if (!object) return false;
  object->value = type;
  object->name = entry.name;
  table[static_cast<int>(type)] = object;
  auto* py = reinterpret_cast<PyObject*>(object);
  if (PyObject_SetAttrString(module, entry.name, py) < 0) return false;
  const bool second = entry.legacy_name && entry.legacy_name[0];
  return !second || PyObject_SetAttrString(module, entry.legacy_name, py) == 0;
}

} // namespace

PyObject* wrap(c10::ScalarType type) {
  auto* object = reinterpret_cast<PyObject*>(table[static_cast<int>(type)]);
  if (!object) {
    PyErr_SetString(PyExc_RuntimeError, "this tensor has no dtype");
    return nullptr;
  }
  Py_INCREF(object);
  return object;
}

bool dtype_from_object(PyObject* o, c10::ScalarType* out) {
  if (is_dtype(o)) {
    *out = dtype_value(o);
  } else if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *out = c10::kDouble;
  } else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *out = c10::kLong;
  } else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *out = c10::kBool;
  } else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *out = c10::kComplexDouble;
  } else {
    return false;
  }
  return true;
}

bool init_dtype(PyObject* module) {
  DtypeType.tp_basicsize = sizeof(PyDtype);
  DtypeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  DtypeType.tp_repr = dtype_repr;
  DtypeType.tp_methods = methods;
  DtypeType.tp_getset = properties;
  if (!add_type(module, &DtypeType)) return false;
  PyRef owner(PyUnicode_FromString("torch"));
  if (!owner || PyDict_SetItemString(DtypeType.tp_dict, "__module__", owner.get()) < 0)
    return false;
  for (int i = 0; i < c10::NumScalarTypes; ++i) {
    const auto type = static_cast<c10::ScalarType>(i);
    if (type != c10::ScalarType::Undefined && !add_dtype(module, type)) return false;
  }
  return true;
}

} // namespace torch::python
