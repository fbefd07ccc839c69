// The C part of torch.nn.Module: attribute lookup and calling, which every program does thousands
// of times a step. Everything else of Module is Python (torch/nn/modules/module.py).
#include <torch/csrc/python/nn/module_base.h>

#include <torch/csrc/python/types/types.h>

namespace torch::python {
namespace {

PyTypeObject ModuleBaseType = type_object("torch._C._ModuleBase");

// Interned names, and the dictionaries of hooks that concern every module.
PyObject* owned_names[3]; // _parameters, _buffers, _modules
PyObject* hook_names[4];  // the module's own hooks that concern calls
PyObject* forward_name;
PyObject* compiled_name;
PyObject* with_hooks; // call_with_hooks(module, args, kwargs)
PyObject* global_hooks[4];

// What a tracer puts in front of calls and of reads of owned values, on the thread that traces:
// call(module, args, kwargs) and read(module, name, value). Null while nobody traces.
PyObject* traced_call;
PyObject* traced_read;
unsigned long tracing_thread;

bool is_traced() { return PyThread_get_thread_ident() == tracing_thread; }

// What the module owns by that name: a new reference, or null without an error when nothing.
PyObject* owned_by(PyObject* self, PyObject* name) {
  PyRef state(PyObject_GenericGetDict(self, nullptr));
  if (!state) return nullptr;
  for (PyObject* store : owned_names) {
    PyObject* owned = PyDict_GetItemWithError(state.get(), store);
    if (!owned) {
      if (PyErr_Occurred()) return nullptr;
      continue;
    }
    if (!PyDict_Check(owned)) continue;
    PyObject* value = PyDict_GetItemWithError(owned, name);
    if (value || PyErr_Occurred()) return Py_XNewRef(value);
  }
  return nullptr;
}

// Module.__getattr__(name), which a __getattr__ of a subclass calls: what the module owns by that
// name, else AttributeError.
PyObject* module_getattr(PyObject* self, PyObject* name) {
  if (!PyUnicode_Check(name)) {
    PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'",
                 Py_TYPE(name)->tp_name);
    return nullptr;
  }
  PyObject* value = owned_by(self, name);
  if (C10_UNLIKELY(traced_read != nullptr) && value && is_traced()) {
    PyRef owned(value), reader = PyRef::borrow(traced_read);
    return PyObject_CallFunctionObjArgs(reader.get(), self, name, value, nullptr);
  }
  // A __getattr__ that a subclass defines is asked by the slot Python puts in front of this one.
  if (!value && !PyErr_Occurred())
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'",
                 Py_TYPE(self)->tp_name, name);
  return value;
}

// An attribute found the ordinary way, else as __getattr__ finds it.
PyObject* module_getattro(PyObject* self, PyObject* name) {
  PyObject* found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1);
  return found || PyErr_Occurred() ? found : module_getattr(self, name);
}

// Because __getattr__ is there for subclasses to call, Python gives every subclass a slot that goes
// through it by name. Where no class on the way has its own, the direct lookup is put there
// instead; elsewhere the ordinary lookup fails for what the module owns and the subclass is asked
// first. Assigning __getattr__ to a class later makes Python choose the slot anew.
void choose_lookup(PyTypeObject* type) {
  const auto is_own = [type](const char* word) {
    PyRef name(PyUnicode_InternFromString(word));
    return name && _PyType_Lookup(type, name.get()) == _PyType_Lookup(&ModuleBaseType, name.get());
  };
  if (is_own("__getattr__") && is_own("__getattribute__")) {
    type->tp_getattro = module_getattro;
    PyType_Modified(type);
  }
}

PyObject* module_init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  choose_lookup(reinterpret_cast<PyTypeObject*>(cls));
  if (PyErr_Occurred()) return nullptr;
  PyRef next(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type),
                                          reinterpret_cast<PyObject*>(&ModuleBaseType), cls,
                                          nullptr));
  PyRef method(next ? PyObject_GetAttrString(next.get(), "__init_subclass__") : nullptr);
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

// 1 when a hook must run around the call, 0 when not, -1 on an error.
int has_hooks(PyObject* state) {
  for (PyObject* hooks : global_hooks)
    if (hooks && PyDict_GET_SIZE(hooks) > 0) return 1;
  for (PyObject* name : hook_names) {
    PyObject* hooks = PyDict_GetItemWithError(state, name);
    if (!hooks) {
      if (PyErr_Occurred()) return -1;
      continue;
    }
    if (PyDict_Check(hooks) && PyDict_GET_SIZE(hooks) > 0) return 1;
  }
  return 0;
}

PyObject* call_untraced(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyRef state(PyObject_GenericGetDict(self, nullptr));
  if (!state) return nullptr;
  PyObject* compiled = PyDict_GetItemWithError(state.get(), compiled_name);
  if (!compiled && PyErr_Occurred()) return nullptr;
  if (compiled && compiled != Py_None) {
    PyRef callable(Py_NewRef(compiled));
    return PyObject_Call(callable.get(), args, kwargs);
  }
  const int hooked = has_hooks(state.get());
  if (hooked < 0) return nullptr;
  if (hooked > 0 && with_hooks) {
    PyRef keywords(kwargs ? Py_NewRef(kwargs) : PyDict_New());
    if (!keywords) return nullptr;
    return PyObject_CallFunctionObjArgs(with_hooks, self, args, keywords.get(), nullptr);
  }
  PyRef forward(PyObject_GetAttr(self, forward_name));
  return forward ? PyObject_Call(forward.get(), args, kwargs) : nullptr;
}

PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (C10_LIKELY(traced_call == nullptr) || !is_traced()) return call_untraced(self, args, kwargs);
  PyRef call = PyRef::borrow(traced_call);
  PyRef keywords(kwargs ? Py_NewRef(kwargs) : PyDict_New());
  if (!keywords) return nullptr;
  return PyObject_CallFunctionObjArgs(call.get(), self, args, keywords.get(), nullptr);
}

// _call_module(module, args, kwargs): the call as it is without a tracer; modules called by this
// one are traced again.
PyObject* py_call_module(PyObject*, PyObject* args) {
  PyObject *self = nullptr, *positional = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!O!:_call_module", &ModuleBaseType, &self, &PyTuple_Type,
                        &positional, &PyDict_Type, &keywords))
    return nullptr;
  return call_untraced(self, positional, keywords);
}

// _set_module_tracer(call, read): puts a tracer in front of this thread's modules, None takes it
// away. Returns what was there, as a tuple (call, read, thread) that _set_module_tracer(*t)
// restores.
PyObject* set_module_tracer(PyObject*, PyObject* args) {
  PyObject *call = nullptr, *read = nullptr;
  unsigned long thread = PyThread_get_thread_ident();
  if (!PyArg_ParseTuple(args, "OO|k:_set_module_tracer", &call, &read, &thread)) return nullptr;
  PyRef old(Py_BuildValue("(OOk)", traced_call ? traced_call : Py_None,
                          traced_read ? traced_read : Py_None, tracing_thread));
  if (!old) return nullptr;
  Py_XSETREF(traced_call, call == Py_None ? nullptr : Py_NewRef(call));
  Py_XSETREF(traced_read, read == Py_None ? nullptr : Py_NewRef(read));
  tracing_thread = thread;
  return old.release();
}

// _refresh_module_class(cls): chooses the lookup of attributes anew, after a method that stood in
// front of it was taken from a base class.
PyObject* refresh_module_class(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &ModuleBaseType)) {
    PyErr_SetString(PyExc_TypeError, "_refresh_module_class(): expected a class of modules");
    return nullptr;
  }
  choose_lookup(reinterpret_cast<PyTypeObject*>(cls));
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

// _set_module_hooks(call_with_hooks, dictionary x 4): tells the C call where hooks live.
PyObject* set_module_hooks(PyObject*, PyObject* args) {
  PyObject* call = nullptr;
  PyObject* dicts[4];
  if (!PyArg_ParseTuple(args, "OO!O!O!O!:_set_module_hooks", &call, &PyDict_Type, &dicts[0],
                        &PyDict_Type, &dicts[1], &PyDict_Type, &dicts[2], &PyDict_Type, &dicts[3]))
    return nullptr;
  Py_INCREF(call);
  Py_XSETREF(with_hooks, call);
  for (int i = 0; i < 4; ++i) {
    Py_INCREF(dicts[i]);
    Py_XSETREF(global_hooks[i], dicts[i]);
  }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"__getattr__", module_getattr, METH_O, nullptr},
                         {"__init_subclass__", as_method(module_init_subclass),
                          METH_CLASS | METH_VARARGS | METH_KEYWORDS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {{"_set_module_hooks", set_module_hooks, METH_VARARGS, nullptr},
                           {"_set_module_tracer", set_module_tracer, METH_VARARGS, nullptr},
                           {"_call_module", py_call_module, METH_VARARGS, nullptr},
                           {"_refresh_module_class", refresh_module_class, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

bool intern(PyObject** slot, const char* text) {
  *slot = PyUnicode_InternFromString(text);
  return *slot != nullptr;
}
} // namespace

bool has_module_lookup(PyTypeObject* type) noexcept { return type->tp_getattro == module_getattro; }

bool init_module_base(PyObject* module) {
  const char* const owned[] = {"_parameters", "_buffers", "_modules"};
  const char* const hooks[] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                               "_backward_pre_hooks"};
  for (int i = 0; i < 3; ++i)
    if (!intern(&owned_names[i], owned[i])) return false;
  for (int i = 0; i < 4; ++i)
    if (!intern(&hook_names[i], hooks[i])) return false;
  if (!intern(&forward_name, "forward") || !intern(&compiled_name, "_compiled_call_impl"))
    return false;
  ModuleBaseType.tp_basicsize = sizeof(PyObject);
  ModuleBaseType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  // Found by the slot of a subclass with a __getattr__ of its own, so not module_getattro.
  ModuleBaseType.tp_getattro = PyObject_GenericGetAttr;
  ModuleBaseType.tp_call = module_call;
  ModuleBaseType.tp_methods = methods;
  // Instances are made as those of any Python class: without a __new__ of its own, so that one of a
  // mixin that stands after Module among the bases is found.
  ModuleBaseType.tp_new = PyBaseObject_Type.tp_new;
  if (!add_type(module, &ModuleBaseType)) return false;
  if (PyDict_DelItemString(ModuleBaseType.tp_dict, "__new__") != 0) return false;
  PyType_Modified(&ModuleBaseType);
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
