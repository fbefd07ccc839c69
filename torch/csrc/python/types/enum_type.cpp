// Int subclasses with names. The type is built by calling `type(name, (int,), namespace)` from C,
// with the few methods every enumeration shares as built-in functions in that namespace.
#include <torch/csrc/python/types/enum_type.h>

#include <cstring>

namespace torch::python {
namespace {

PyObject* short_type_name(PyObject* self) {
  const char* name = Py_TYPE(self)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return PyUnicode_FromString(dot ? dot + 1 : name);
}

PyObject* enum_text(PyObject* self, const char* format) {
  PyRef name(PyObject_GetAttrString(self, "name")), type(short_type_name(self));
  PyRef value(PyLong_Type.tp_repr(self));
  if (!name || !type || !value) return nullptr;
  return PyUnicode_FromFormat(format, type.get(), name.get(), value.get());
}
PyObject* enum_repr(PyObject*, PyObject* self) { return enum_text(self, "<%U.%U: %U>"); }
PyObject* enum_str(PyObject*, PyObject* self) { return enum_text(self, "%U.%U"); }

PyObject* enum_reduce(PyObject*, PyObject* self) {
  PyRef builtins(PyImport_ImportModule("builtins"));
  PyRef get(builtins ? PyObject_GetAttrString(builtins.get(), "getattr") : nullptr);
  PyRef name(PyObject_GetAttrString(self, "name"));
  if (!get || !name) return nullptr;
  return Py_BuildValue("O(OO)", get.get(), Py_TYPE(self), name.get());
}

PyMethodDef methods[] = {{"__repr__", enum_repr, METH_O, nullptr},
                         {"__str__", enum_str, METH_O, nullptr},
                         {"__reduce__", enum_reduce, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

// Built-in functions do not bind; an instance method object makes them do so.
bool add_shared_methods(PyObject* space) {
  for (PyMethodDef* def = methods; def->ml_name; ++def) {
    PyRef function(PyCFunction_New(def, nullptr));
    PyRef bound(function ? PyInstanceMethod_New(function.get()) : nullptr);
    if (!bound || PyDict_SetItemString(space, def->ml_name, bound.get()) < 0) return false;
  }
  return true;
}

} // namespace

PyObject* add_enum(PyObject* module, const char* full_name, const EnumMember* members,
                   size_t count) {
  const char* name = std::strrchr(full_name, '.') + 1;
  PyRef space(Py_BuildValue("{s:s#}", "__module__", full_name,
                            static_cast<Py_ssize_t>(name - 1 - full_name)));
  if (!space || !add_shared_methods(space.get())) return nullptr;
  PyRef type(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O)O", name,
                                   reinterpret_cast<PyObject*>(&PyLong_Type), space.get()));
  PyRef table(PyDict_New());
  if (!type || !table) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    PyRef member(PyObject_CallFunction(type.get(), "l", members[i].value));
    PyRef text(PyUnicode_InternFromString(members[i].name));
    PyRef value(PyLong_FromLong(members[i].value));
    if (!member || !text || !value ||
        PyObject_SetAttrString(member.get(), "name", text.get()) < 0 ||
        PyObject_SetAttrString(member.get(), "value", value.get()) < 0 ||
        PyDict_SetItem(table.get(), text.get(), member.get()) < 0 ||
        PyObject_SetAttr(type.get(), text.get(), member.get()) < 0) {
      return nullptr;
    }
  }
  if (PyObject_SetAttrString(type.get(), "__members__", table.get()) < 0) return nullptr;
  Py_INCREF(type.get());
  return add_object(module, name, type.get()) ? type.release() : nullptr;
}

PyObject* enum_member(PyObject* type, long value) {
  PyRef table(PyObject_GetAttrString(type, "__members__"));
  if (!table) return nullptr;
  PyObject *key = nullptr, *member = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(table.get(), &position, &key, &member)) {
    if (PyLong_AsLong(member) == value) {
      Py_INCREF(member);
      return member;
    }
  }
  PyErr_Format(PyExc_ValueError, "%ld is not a member of %R", value, type);
  return nullptr;
}

} // namespace torch::python
