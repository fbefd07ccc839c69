// The decision who handles an operator call, and the call itself. See torch_function.h.
#include <torch/csrc/python/dispatch/torch_function.h>

#include <torch/csrc/python/dispatch/function_modes.h>

#include <cstring>

namespace torch::python {

PyObject* disabled_torch_function = nullptr;
PyObject* disabled_torch_dispatch = nullptr;

namespace {

PyObject* torch_function_name = nullptr; // interned "__torch_function__"
PyObject* torch_dispatch_name = nullptr; // interned "__torch_dispatch__"

// ---- traits of types ----------------------------------------------------------------------------
// CPython gives each state of a type a version number that is never reused, so a number found in
// the cache still describes the type. Zero means "not numbered".
struct CachedTraits {
  unsigned version;
  uint8_t traits;
};
constexpr unsigned kCacheSize = 256;
CachedTraits cache[kCacheSize];

unsigned version_of(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
  if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return static_cast<unsigned>(type->tp_version_tag);
}

bool has_handler(PyTypeObject* type, PyObject* name, PyObject* disabled) {
  PyRef attribute(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  if (!attribute) PyErr_Clear();
  return attribute && attribute.get() != disabled && attribute.get() != Py_None;
}

uint8_t compute_traits(PyTypeObject* type) {
  uint8_t traits = PyType_IsSubtype(type, &TensorBaseType) ? kIsTensorType : 0;
  if (type == TensorClass || type == &TensorBaseType) return traits;
  if (has_handler(type, torch_function_name, disabled_torch_function)) traits |= kOverrides;
  if ((traits & kIsTensorType) && has_handler(type, torch_dispatch_name, disabled_torch_dispatch)) {
    traits |= kDispatches;
  }
  return traits;
}

// ---- owners of functions ------------------------------------------------------------------------
struct Owner {
  const char* module;
  PyObject* object;
};
constexpr int kMaxOwners = 16;
Owner owners[kMaxOwners];
int owner_count = 0;

PyRef types_of(const Overloads& overloads) {
  PyRef types = checked(PyTuple_New(static_cast<Py_ssize_t>(overloads.size())));
  for (size_t i = 0; i < overloads.size(); ++i) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(overloads[i]));
    Py_INCREF(type);
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i), type);
  }
  return types;
}

// One handler: a new reference (possibly NotImplemented) or python_error.
PyRef ask(PyObject* handler_owner, PyObject* func, PyObject* types, PyObject* args,
          PyObject* kwargs) {
  PyRef handler = checked(PyObject_GetAttr(handler_owner, torch_function_name));
  PyObject* parts[] = {func, types, args, kwargs};
  return checked(PyObject_Vectorcall(handler.get(), parts, kwargs ? 4 : 3, nullptr));
}

[[noreturn]] void fail_unhandled(const Overloads& overloads, const char* public_name,
                                 PyObject* mode) {
  std::string message = "Multiple dispatch failed for '";
  message += public_name;
  message += "'; all __torch_function__ handlers returned NotImplemented:\n\n";
  if (mode) message += "  - mode object " + repr_of(mode) + "\n";
  for (size_t i = 0; i < overloads.size(); ++i) {
    message += "  - tensor subclass ";
    message += repr_of(reinterpret_cast<PyObject*>(Py_TYPE(overloads[i])));
    message += "\n";
  }
  raise_type_error(message);
}

PyRef run(PyObject* func, const Overloads& overloads, PyObject* args, PyObject* kwargs,
          const char* public_name) {
  PyRef types = types_of(overloads);
  PyRef mode;
  if (function_mode_active()) {
    FunctionModeOff off; // the handler runs below its own mode
    mode = off.mode();
    PyRef result = ask(mode.get(), func, types.get(), args, kwargs);
    if (result.get() != Py_NotImplemented) return result;
  }
  for (size_t i = 0; i < overloads.size(); ++i) {
    PyRef result = ask(overloads[i], func, types.get(), args, kwargs);
    if (result.get() != Py_NotImplemented) return result;
  }
  fail_unhandled(overloads, public_name, mode.get());
}

PyRef property_function(const char* name, const char* accessor) {
  PyRef descriptor =
      checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&TensorBaseType), name));
  return checked(PyObject_GetAttrString(descriptor.get(), accessor));
}

} // namespace

uint8_t type_traits(PyTypeObject* type) {
  const unsigned version = version_of(type);
  if (C10_LIKELY(version != 0)) {
    const CachedTraits& entry = cache[version % kCacheSize];
    if (C10_LIKELY(entry.version == version)) return entry.traits;
  }
  const uint8_t traits = compute_traits(type);
  // The look-up itself may have numbered the type.
  if (const unsigned fresh = version_of(type)) cache[fresh % kCacheSize] = {fresh, traits};
  return traits;
}

void Overloads::add(PyObject* o) {
  if (is_plain_tensor(o) || !(type_traits(Py_TYPE(o)) & kOverrides)) return;
  for (PyObject* known : args_) {
    if (Py_TYPE(known) == Py_TYPE(o)) return;
  }
  PyObject** where = args_.begin();
  while (where != args_.end() && !PyType_IsSubtype(Py_TYPE(o), Py_TYPE(*where))) ++where;
  args_.insert(where, o);
}

void Overloads::add_sequence(PyObject* sequence) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
  PyObject** items = PySequence_Fast_ITEMS(sequence);
  for (Py_ssize_t i = 0; i < n; ++i) add(items[i]);
}

PyObject* run_torch_function(PyObject* func, const Overloads& overloads, PyObject* args,
                             PyObject* kwargs, const char* public_name) {
  return guarded([&] {
    PyObject* given = kwargs && PyDict_GET_SIZE(kwargs) > 0 ? kwargs : nullptr;
    return run(func, overloads, args, given, public_name).release();
  });
}

bool property_override(PyObject* self, const char* name, PyObject** result) {
  if (C10_LIKELY(is_plain_tensor(self) && !function_mode_active())) return false;
  Overloads overloads;
  if (overrides_enabled()) overloads.add(self);
  if (overloads.empty() && !function_mode_active()) return false;
  *result = guarded([&] {
    PyRef func = property_function(name, "__get__");
    PyRef args = checked(PyTuple_Pack(1, self));
    const std::string public_name = std::string("torch.Tensor.") + name + ".__get__";
    return run(func.get(), overloads, args.get(), nullptr, public_name.c_str()).release();
  });
  return true;
}

bool property_set_override(PyObject* self, const char* name, PyObject* value, int* status) {
  if (C10_LIKELY(is_plain_tensor(self) && !function_mode_active())) return false;
  Overloads overloads;
  if (overrides_enabled()) overloads.add(self);
  if (overloads.empty() && !function_mode_active()) return false;
  PyObject* result = guarded([&] {
    PyRef func = property_function(name, value ? "__set__" : "__delete__");
    PyRef args = checked(value ? PyTuple_Pack(2, self, value) : PyTuple_Pack(1, self));
    const std::string public_name = std::string("torch.Tensor.") + name + ".__set__";
    return run(func.get(), overloads, args.get(), nullptr, public_name.c_str()).release();
  });
  *status = result ? 0 : -1;
  Py_XDECREF(result);
  return true;
}

bool slot_override(const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject** result) {
  Overloads overloads;
  if (overrides_enabled()) {
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      overloads.add(args[i]);
      if (PyTuple_Check(args[i])) overloads.add_sequence(args[i]);
    }
  }
  if (overloads.empty() && !function_mode_active()) return false;
  *result = guarded([&] {
    PyRef func =
        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&TensorBaseType), name));
    PyRef tuple = checked(PyTuple_New(nargs));
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      Py_INCREF(args[i]);
      PyTuple_SET_ITEM(tuple.get(), i, args[i]);
    }
    const std::string public_name = std::string("torch.Tensor.") + name;
    return run(func.get(), overloads, tuple.get(), nullptr, public_name.c_str()).release();
  });
  return true;
}

bool method_override(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames, PyObject** result) {
  if (C10_LIKELY(is_plain_tensor(self) && !function_mode_active())) return false;
  Overloads overloads;
  if (overrides_enabled()) overloads.add(self);
  if (overloads.empty() && !function_mode_active()) return false;
  *result = guarded([&] {
    PyRef func =
        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&TensorBaseType), name));
    PyRef tuple = checked(PyTuple_New(nargs + 1));
    for (Py_ssize_t i = 0; i <= nargs; ++i) {
      PyObject* value = i == 0 ? self : args[i - 1];
      Py_INCREF(value);
      PyTuple_SET_ITEM(tuple.get(), i, value);
    }
    PyRef kwargs = checked(PyDict_New());
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
      check_status(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]));
    }
    const std::string public_name = std::string("torch.Tensor.") + name;
    PyObject* given = PyDict_GET_SIZE(kwargs.get()) > 0 ? kwargs.get() : nullptr;
    return run(func.get(), overloads, tuple.get(), given, public_name.c_str()).release();
  });
  return true;
}

void register_function_owner(const char* public_module, PyObject* owner) {
  if (owner_count < kMaxOwners) {
    Py_INCREF(owner);
    owners[owner_count++] = {public_module, owner};
  }
}

PyObject* public_callable(const char* module, const char* name) {
  if (std::strcmp(module, "torch.Tensor") == 0) {
    return PyObject_GetAttrString(reinterpret_cast<PyObject*>(&TensorBaseType), name);
  }
  for (int i = 0; i < owner_count; ++i) {
    if (std::strcmp(owners[i].module, module) != 0) continue;
    if (PyObject* function = PyObject_GetAttrString(owners[i].object, name)) return function;
    PyErr_Clear();
  }
  // Hand-written ones (torch.device, ...) are members of the public module itself.
  PyRef owner(PyImport_ImportModule(module));
  return owner ? PyObject_GetAttrString(owner.get(), name) : nullptr;
}

bool init_torch_function(PyObject* module) {
  torch_function_name = PyUnicode_InternFromString("__torch_function__");
  torch_dispatch_name = PyUnicode_InternFromString("__torch_dispatch__");
  return torch_function_name && torch_dispatch_name && init_function_modes(module);
}

} // namespace torch::python
