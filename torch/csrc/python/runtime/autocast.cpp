// Python's view of the autocast state: torch.is_autocast_enabled(device_type) and its like. The
// context manager itself is Python (torch/amp/autocast_mode.py); regions are entered once per step.
#include <torch/csrc/python/runtime/autocast.h>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autocast/Autocast.h>
#include <torch/csrc/python/types/types.h>

namespace torch::python {
namespace {

namespace autocast = at::autocast;

c10::DeviceType device_type(PyObject* name, const char* function) {
  if (!PyUnicode_Check(name)) {
    raise_type_error(
        c10::str(function, "(): argument 'device_type' must be str, not ", type_name(name)));
  }
  return c10::Device(std::string(utf8(name))).type();
}

// Devices without autocast answer as PyTorch does: off, float16.
PyObject* is_enabled(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (names && PyTuple_GET_SIZE(names) == 1) {
      const std::string_view name = utf8(PyTuple_GET_ITEM(names, 0));
      if (name != "device_type" || count != 0) {
        raise_type_error(
            c10::str("is_autocast_enabled() got an unexpected keyword argument '", name, "'"));
      }
      count = 1;
    } else if (names && PyTuple_GET_SIZE(names) != 0) {
      raise_type_error("is_autocast_enabled() takes at most one argument");
    }
    if (count > 1) raise_type_error("is_autocast_enabled() takes at most one argument");
    const c10::DeviceType device = count ? device_type(args[0], "is_autocast_enabled") : c10::kCUDA;
    return new_bool(autocast::is_available(device) && autocast::is_enabled(device));
  });
}
PyObject* set_enabled(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count < 1 || count > 2 || !PyBool_Check(args[count - 1])) {
      raise_type_error("set_autocast_enabled(device_type, enabled) takes a str and a bool");
    }
    const c10::DeviceType device =
        count == 2 ? device_type(args[0], "set_autocast_enabled") : c10::kCUDA;
    autocast::set_enabled(device, args[count - 1] == Py_True);
    return new_none();
  });
}
PyObject* get_dtype(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const c10::DeviceType device = device_type(name, "get_autocast_dtype");
    return wrap(autocast::is_available(device) ? autocast::dtype(device) : c10::kHalf);
  });
}
PyObject* set_dtype(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    c10::ScalarType dtype = c10::kFloat;
    if (count != 2 || !dtype_from_object(args[1], &dtype)) {
      raise_type_error("set_autocast_dtype(device_type, dtype) takes a str and a torch.dtype");
    }
    autocast::set_dtype(device_type(args[0], "set_autocast_dtype"), dtype);
    return new_none();
  });
}
PyObject* is_available(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    return new_bool(autocast::is_available(device_type(name, "_is_autocast_available")));
  });
}
PyObject* is_any_enabled(PyObject*, PyObject*) {
  for (const c10::DeviceType device : {c10::kCPU, c10::kCUDA})
    if (autocast::is_available(device) && autocast::is_enabled(device)) return new_bool(true);
  return new_bool(false);
}
PyObject* is_cache_enabled(PyObject*, PyObject*) { return new_bool(autocast::is_cache_enabled()); }
PyObject* set_cache_enabled(PyObject*, PyObject* enabled) {
  return guarded([&]() -> PyObject* {
    if (!PyBool_Check(enabled)) raise_type_error("set_autocast_cache_enabled() takes a bool");
    autocast::set_cache_enabled(enabled == Py_True);
    return new_none();
  });
}
PyObject* clear_cache(PyObject*, PyObject*) {
  autocast::clear_cache();
  return new_none();
}
PyObject* increment_nesting(PyObject*, PyObject*) {
  return PyLong_FromLong(autocast::increment_nesting());
}
PyObject* decrement_nesting(PyObject*, PyObject*) {
  return PyLong_FromLong(autocast::decrement_nesting());
}

template <class F> PyCFunction fast(F* f) { return reinterpret_cast<PyCFunction>(f); }

PyMethodDef functions[] = {
    {"is_autocast_enabled", fast(is_enabled), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"set_autocast_enabled", fast(set_enabled), METH_FASTCALL, nullptr},
    {"get_autocast_dtype", get_dtype, METH_O, nullptr},
    {"set_autocast_dtype", fast(set_dtype), METH_FASTCALL, nullptr},
    {"_is_autocast_available", is_available, METH_O, nullptr},
    {"_is_any_autocast_enabled", is_any_enabled, METH_NOARGS, nullptr},
    {"is_autocast_cache_enabled", is_cache_enabled, METH_NOARGS, nullptr},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O, nullptr},
    {"clear_autocast_cache", clear_cache, METH_NOARGS, nullptr},
    {"autocast_increment_nesting", increment_nesting, METH_NOARGS, nullptr},
    {"autocast_decrement_nesting", decrement_nesting, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_autocast(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
