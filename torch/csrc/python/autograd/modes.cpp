// Bases of no_grad, enable_grad, set_grad_enabled and inference_mode: construction, __enter__ and
// __exit__. What makes them decorators is Python (torch/autograd/grad_mode.py).
#include <torch/csrc/python/autograd/modes.h>

#include <ATen/core/UnregisteredAutograd.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

namespace torch::python {
namespace {

struct Mode {
  PyObject_HEAD c10::AutogradState before;
  uint64_t excluded;
  bool mode;
};
Mode* as_mode(PyObject* o) { return reinterpret_cast<Mode*>(o); }

PyTypeObject NoGradType = type_object("torch._C._NoGradBase");
PyTypeObject EnableGradType = type_object("torch._C._EnableGradBase");
PyTypeObject SetGradType = type_object("torch._C._SetGradEnabledBase");
PyTypeObject InferenceType = type_object("torch._C._InferenceModeBase");

// The only argument of a constructor, borrowed, or null; throws for others.
PyObject* only_argument(PyTypeObject* type, PyObject* args, PyObject* kwargs, const char* name) {
  Py_ssize_t given = PyTuple_GET_SIZE(args);
  PyObject* value = given > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
    PyObject* named = PyDict_GetItemString(kwargs, name);
    if (!named) raise_type_error(c10::str(type->tp_name, "() got an unexpected keyword argument"));
    given += PyDict_GET_SIZE(kwargs);
    value = named;
  }
  if (given > 1) raise_type_error(c10::str(type->tp_name, "() takes at most one argument"));
  return value;
}

PyObject* allocate(PyTypeObject* type, bool mode) {
  PyObject* self = checked(type->tp_alloc(type, 0)).release();
  as_mode(self)->mode = mode;
  as_mode(self)->before = c10::tls_autograd_state;
  return self;
}

// `@no_grad` without parentheses: the constructor gets the function and returns the decorated one.
PyObject* decorated(PyRef self, PyObject* function) {
  return checked(PyObject_CallOneArg(self.get(), function)).release();
}

template <bool kMode> PyObject* grad_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* function = only_argument(type, args, kwargs, "orig_func");
    PyRef self(allocate(type, kMode));
    if (!function || function == Py_None) return self.release();
    return decorated(std::move(self), function);
  });
}
PyObject* set_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* mode = only_argument(type, args, kwargs, "mode");
    if (!mode)
      raise_type_error("set_grad_enabled() missing 1 required positional argument: 'mode'");
    if (!PyBool_Check(mode)) {
      raise_type_error(c10::str("set_grad_enabled(): argument 'enabled' (position 1) must be bool, "
                                "not ",
                                Py_TYPE(mode)->tp_name));
    }
    PyObject* self = allocate(type, mode == Py_True);
    c10::tls_autograd_state.grad_mode = mode == Py_True;
    return self;
  });
}
PyObject* inference_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* mode = only_argument(type, args, kwargs, "mode");
    if (!mode || PyBool_Check(mode)) return allocate(type, mode != Py_False);
    return decorated(PyRef(allocate(type, true)), mode);
  });
}
// The arguments were read by tp_new.
int accept(PyObject*, PyObject*, PyObject*) { return 0; }

PyObject* grad_enter(PyObject* self, PyObject*) {
  as_mode(self)->before = c10::tls_autograd_state;
  c10::tls_autograd_state.grad_mode = as_mode(self)->mode;
  return new_none();
}
// The former mode is the one at construction.
PyObject* set_enter(PyObject* self, PyObject*) {
  c10::tls_autograd_state.grad_mode = as_mode(self)->mode;
  return new_none();
}
PyObject* grad_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  c10::tls_autograd_state.grad_mode = as_mode(self)->before.grad_mode;
  return new_none();
}

PyObject* inference_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    Mode* mode = as_mode(self);
    const c10::InferenceModeState before = c10::enter_inference_mode(mode->mode);
    mode->before = before.autograd;
    mode->excluded = before.excluded;
    return new_none();
  });
}
PyObject* inference_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  c10::leave_inference_mode({as_mode(self)->before, as_mode(self)->excluded});
  return new_none();
}

PyObject* get_mode(PyObject* self, void*) { return new_bool(as_mode(self)->mode); }
PyObject* get_prev(PyObject* self, void*) { return new_bool(as_mode(self)->before.grad_mode); }
PyGetSetDef properties[] = {{"mode", get_mode, nullptr, nullptr, nullptr},
                            {"prev", get_prev, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef grad_methods[] = {{"__enter__", grad_enter, METH_NOARGS, nullptr},
                              {"__exit__", as_method(grad_exit), METH_FASTCALL, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PyMethodDef set_methods[] = {{"__enter__", set_enter, METH_NOARGS, nullptr},
                             {"__exit__", as_method(grad_exit), METH_FASTCALL, nullptr},
                             {nullptr, nullptr, 0, nullptr}};
PyMethodDef inference_methods[] = {{"__enter__", inference_enter, METH_NOARGS, nullptr},
                                   {"__exit__", as_method(inference_exit), METH_FASTCALL, nullptr},
                                   {nullptr, nullptr, 0, nullptr}};

// What happens at an operator without an autograd kernel: "nothing" or "warn".
PyObject* py_fallback_mode(PyObject*, PyObject*) {
  const bool warns = autograd::unregistered_mode() == autograd::UnregisteredMode::Warn;
  return guarded(
      [&] { return checked(PyUnicode_FromString(warns ? "warn" : "nothing")).release(); });
}
PyObject* py_set_fallback_mode(PyObject*, PyObject* mode) {
  return guarded([&] {
    const std::string name = PyUnicode_Check(mode) ? text_of(mode) : std::string();
    TORCH_CHECK(name == "nothing" || name == "warn",
                "_set_autograd_fallback_mode: mode must be \"nothing\" or \"warn\", got ",
                text_of(checked(PyObject_Repr(mode)).get()));
    autograd::set_unregistered_mode(name == "warn" ? autograd::UnregisteredMode::Warn
                                                   : autograd::UnregisteredMode::Nothing);
    return new_none();
  });
}
PyMethodDef module_functions[] = {
    {"_get_autograd_fallback_mode", py_fallback_mode, METH_NOARGS, nullptr},
    {"_set_autograd_fallback_mode", py_set_fallback_mode, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

bool add(PyObject* module, PyTypeObject& type, newfunc make, PyMethodDef* methods) {
  type.tp_basicsize = sizeof(Mode);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_new = make;
  type.tp_init = accept;
  type.tp_methods = methods;
  type.tp_getset = properties;
  return add_type(module, &type);
}

} // namespace

bool init_autograd_modes(PyObject* module) {
  return add(module, NoGradType, grad_new<false>, grad_methods) &&
         add(module, EnableGradType, grad_new<true>, grad_methods) &&
         add(module, SetGradType, set_new, set_methods) &&
         add(module, InferenceType, inference_new, inference_methods) &&
         PyModule_AddFunctions(module, module_functions) == 0;
}

} // namespace torch::python
