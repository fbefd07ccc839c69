// Handles of types, classes and objects of scripted programs.
#include <torch/csrc/python/jit/jit.h>

#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {

using at::IValue;
using jit::ClassInfo;
using jit::Type;

namespace {

PyTypeObject TypeHandle = type_object("torch._C._ScriptType");
PyTypeObject ClassHandle = type_object("torch._C._ScriptClass");
PyTypeObject ObjectHandle = type_object("torch._C._ScriptObject");

template <class T> struct Handle {
  PyObject_HEAD T* value;
  PyObject* weak;
};
template <class T> T& held(PyObject* o) { return *reinterpret_cast<Handle<T>*>(o)->value; }
template <class T> PyRef new_handle(PyTypeObject* type, T value) {
  auto copy = std::make_unique<T>(std::move(value));
  PyRef out = checked(type->tp_alloc(type, 0));
  auto* handle = reinterpret_cast<Handle<T>*>(out.get());
  handle->value = copy.release();
  handle->weak = nullptr;
  return out;
}
template <class T> void drop_handle(PyObject* o) {
  auto* handle = reinterpret_cast<Handle<T>*>(o);
  if (handle->weak) PyObject_ClearWeakRefs(o);
  delete handle->value;
  Py_TYPE(o)->tp_free(o);
}

using ClassPtr = std::shared_ptr<ClassInfo>;
using jit::TypePtr;

std::vector<std::string> strings(PyObject* sequence) {
  const PyRef items = checked(PySequence_Tuple(sequence));
  std::vector<std::string> out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    out.emplace_back(utf8(PyTuple_GET_ITEM(items.get(), i)));
  return out;
}

// _script_type(kind, name, inner, fields, class, methods, python)
PyObject* py_type(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int kind = 0;
    PyObject *name, *inner, *fields, *cls, *methods, *python;
    if (!PyArg_ParseTuple(args, "iUOOOOO", &kind, &name, &inner, &fields, &cls, &methods, &python))
      return nullptr;
    auto type = std::make_shared<ScriptType>();
    if (kind < 0 || kind > static_cast<int>(Type::Kind::Function))
      raise(PyExc_ValueError, "unknown kind of type");
    type->kind = static_cast<Type::Kind>(kind);
    type->name = std::string(utf8(name));
    const PyRef parts = checked(PySequence_Tuple(inner));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i)
      type->inner.push_back(type_of_handle(PyTuple_GET_ITEM(parts.get(), i)));
    type->fields = strings(fields);
    if (cls != Py_None) type->cls = class_of_handle(cls);
    type->methods = strings(methods);
    if (python != Py_None) type->python = PyRef::borrow(python);
    return new_handle<TypePtr>(&TypeHandle, std::move(type)).release();
  });
}

// _script_class(name, is_module)
PyObject* py_class(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* name;
    int is_module;
    if (!PyArg_ParseTuple(args, "Up", &name, &is_module)) return nullptr;
    auto cls = std::make_shared<ClassInfo>();
    cls->name = std::string(utf8(name));
    cls->is_module = is_module != 0;
    return new_handle<ClassPtr>(&ClassHandle, std::move(cls)).release();
  });
}
PyObject* class_add_slot(PyObject* self, PyObject* name) {
  return guarded([&] {
    ClassInfo& cls = *held<ClassPtr>(self);
    cls.slots.emplace_back(utf8(name));
    return PyLong_FromSize_t(cls.slots.size() - 1);
  });
}
PyObject* class_add_method(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name, *function;
    if (!PyArg_ParseTuple(args, "UO", &name, &function)) return nullptr;
    held<ClassPtr>(self)->methods[std::string(utf8(name))] = function_of_handle(function);
    return new_none();
  });
}
PyObject* class_name(PyObject* self, void*) {
  return guarded([&] { return wrap(held<ClassPtr>(self)->name); });
}
PyMethodDef class_methods[] = {{"add_slot", class_add_slot, METH_O, nullptr},
                               {"add_method", class_add_method, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef class_properties[] = {{"name", class_name, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- objects ----------------------------------------------------------------------------------
jit::Object& object_ref(PyObject* self) {
  return jit::need<jit::Object>(held<IValue>(self), "object");
}
PyObject* py_object(PyObject*, PyObject* cls) {
  return guarded([&] {
    const auto object = jit::make<jit::Object>(class_of_handle(cls));
    return new_handle<IValue>(&ObjectHandle, object).release();
  });
}
size_t slot_index(PyObject* self, PyObject* index) {
  const Py_ssize_t i = PyLong_AsSsize_t(index);
  if (i == -1 && PyErr_Occurred()) throw python_error();
  jit::Object& object = object_ref(self);
  // Slots may be added to a class while its first object exists.
  if (object.slots.size() < object.cls->slots.size()) object.slots.resize(object.cls->slots.size());
  if (i < 0 || static_cast<size_t>(i) >= object.slots.size())
    raise(PyExc_IndexError, "no such slot");
  return static_cast<size_t>(i);
}
PyObject* object_get(PyObject* self, PyObject* index) {
  return guarded([&] {
    const size_t i = slot_index(self, index);
    const IValue value = object_ref(self).slots[i];
    return to_python(value).release();
  });
}
PyObject* object_set(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *index, *value, *type;
    if (!PyArg_ParseTuple(args, "OOO", &index, &value, &type)) return nullptr;
    const size_t i = slot_index(self, index);
    try {
      object_ref(self).slots[i] = to_script(value, *type_of_handle(type));
    } catch (const CastError& e) {
      raise(PyExc_RuntimeError, c10::str("Could not convert the value of attribute '",
                                         object_ref(self).cls->slots[i], "': ", e.why));
    }
    return new_none();
  });
}
PyObject* object_version(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(object_ref(self).version); });
}
PyObject* object_class(PyObject* self, void*) {
  return guarded([&] { return wrap(object_ref(self).cls->name); });
}
PyObject* object_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != &ObjectHandle || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const bool same = held<IValue>(a).ref.get() == held<IValue>(b).ref.get();
  return new_bool(same == (op == Py_EQ));
}
Py_hash_t object_hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(held<IValue>(self).ref.get()) >> 4);
}
PyMethodDef object_methods[] = {{"get", object_get, METH_O, nullptr},
                                {"set", object_set, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef object_properties[] = {{"version", object_version, nullptr, nullptr, nullptr},
                                   {"class_name", object_class, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

// What turns a handle into the object that programs see: set by torch.jit.
PyObject* wrapper = nullptr;
PyObject* py_set_wrapper(PyObject*, PyObject* function) {
  Py_XSETREF(wrapper, Py_NewRef(function));
  return new_none();
}

template <class T> bool ready(PyObject* module, PyTypeObject& type) {
  type.tp_basicsize = sizeof(Handle<T>);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_dealloc = drop_handle<T>;
  type.tp_weaklistoffset = offsetof(Handle<T>, weak);
  return add_type(module, &type);
}

PyMethodDef functions[] = {{"_script_type", py_type, METH_VARARGS, nullptr},
                           {"_script_class", py_class, METH_VARARGS, nullptr},
                           {"_script_object", py_object, METH_O, nullptr},
                           {"_set_script_wrapper", py_set_wrapper, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

jit::TypePtr type_of_handle(PyObject* o) {
  if (Py_TYPE(o) != &TypeHandle) raise_type_error("expected a type of scripted code");
  return held<TypePtr>(o);
}
std::shared_ptr<ClassInfo> class_of_handle(PyObject* o) {
  if (Py_TYPE(o) != &ClassHandle) raise_type_error("expected a class of scripted code");
  return held<ClassPtr>(o);
}

PyRef new_object_handle(const IValue& object) {
  PyRef handle = new_handle<IValue>(&ObjectHandle, object);
  return wrapper ? checked(PyObject_CallOneArg(wrapper, handle.get())) : handle;
}

bool object_of(PyObject* o, IValue* out) {
  PyRef handle = PyRef::borrow(o);
  if (Py_TYPE(o) != &ObjectHandle) {
    static PyObject* name = PyUnicode_InternFromString("_script_handle");
    handle = PyRef(PyObject_GetAttr(o, name));
    if (!handle) {
      PyErr_Clear();
      return false;
    }
    if (Py_TYPE(handle.get()) != &ObjectHandle) return false;
  }
  *out = held<IValue>(handle.get());
  return true;
}

bool init_jit_types(PyObject* module) {
  ClassHandle.tp_methods = class_methods;
  ClassHandle.tp_getset = class_properties;
  ObjectHandle.tp_methods = object_methods;
  ObjectHandle.tp_getset = object_properties;
  ObjectHandle.tp_richcompare = object_compare;
  ObjectHandle.tp_hash = object_hash;
  return ready<TypePtr>(module, TypeHandle) && ready<ClassPtr>(module, ClassHandle) &&
         ready<IValue>(module, ObjectHandle) && PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
