// What a compilation changes in its thread and process while it runs, noted before and put back
// afterwards as a whole. The interpreter asks for signals between instructions alone, so that no
// handler can raise before everything is back: code in Python could be stopped halfway.
#include <torch/csrc/dynamo/eval_frame.h>

#include <ATen/functorch/Level.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autocast/Autocast.h>
#include <torch/csrc/python/autograd/saved.h>
#include <torch/csrc/python/dispatch/function_modes.h>
#include <torch/csrc/python/dispatch/python_dispatch.h>

namespace torch::dynamo {
namespace {

using python::check_status;
using python::checked;
using python::guarded;

PyTypeObject SettingsType = python::type_object("torch._C._dynamo.eval_frame.ThreadSettings");

constexpr c10::DeviceType kAutocastDevices[] = {c10::DeviceType::CPU, c10::DeviceType::CUDA};

struct Autocast {
  bool enabled[2];
  c10::ScalarType dtype[2];
  bool cached;
  int regions; // that the thread is in

  static Autocast now() {
    Autocast out;
    for (size_t i = 0; i < 2; ++i) {
      out.enabled[i] = at::autocast::is_enabled(kAutocastDevices[i]);
      out.dtype[i] = at::autocast::dtype(kAutocastDevices[i]);
    }
    out.cached = at::autocast::is_cache_enabled();
    out.regions = at::autocast::nesting();
    return out;
  }
  void put_back() const {
    for (size_t i = 0; i < 2; ++i) {
      if (at::autocast::is_enabled(kAutocastDevices[i]) != enabled[i])
        at::autocast::set_enabled(kAutocastDevices[i], enabled[i]);
      if (at::autocast::dtype(kAutocastDevices[i]) != dtype[i])
        at::autocast::set_dtype(kAutocastDevices[i], dtype[i]);
    }
    if (at::autocast::is_cache_enabled() != cached) at::autocast::set_cache_enabled(cached);
    leave_regions();
  }

 private:
  // Casts of weights live as long as the outermost region.
  void leave_regions() const {
    if (at::autocast::nesting() <= regions) return;
    while (at::autocast::nesting() > regions) at::autocast::decrement_nesting();
    if (regions == 0) at::autocast::clear_cache();
  }
};

// An attribute of an object of the compiler, with the value that it had.
struct Attribute {
  PyRef owner, name, value;

  static Attribute of(PyObject* owner, const char* name) {
    Attribute out{PyRef::borrow(owner), checked(PyUnicode_InternFromString(name)), PyRef()};
    out.value = checked(PyObject_GetAttr(owner, out.name.get()));
    return out;
  }
  void put_back() const { check_status(PyObject_SetAttr(owner.get(), name.get(), value.get())); }
};

struct Settings {
  std::vector<Attribute> attributes;
  PyRef stages; // a list that grows with each stage of the compilation
  Py_ssize_t stage_count = 0;
  int recursion_limit = Py_GetRecursionLimit();
  bool grad_mode = c10::tls_autograd_state.grad_mode;
  bool fw_grad_mode = c10::tls_autograd_state.fw_grad_mode;
  Autocast autocast = Autocast::now();
  std::string no_saved_hooks = python::saved_hooks_disabled_because();
  size_t levels = at::functorch::level_stack().size();
  python::FunctionState overrides = python::function_state();
  python::FunctionModes function_modes = python::FunctionModes::now();
  python::DispatchModes dispatch_modes = python::DispatchModes::now();

  void put_back() const {
    for (const Attribute& attribute : attributes) attribute.put_back();
    if (PyList_GET_SIZE(stages.get()) > stage_count)
      check_status(PyList_SetSlice(stages.get(), stage_count, PY_SSIZE_T_MAX, nullptr));
    if (Py_GetRecursionLimit() != recursion_limit) Py_SetRecursionLimit(recursion_limit);
    while (at::functorch::level_stack().size() > levels)
      at::functorch::pop_level(at::functorch::level_stack().back()->kind);
    c10::tls_autograd_state.grad_mode = grad_mode;
    c10::tls_autograd_state.fw_grad_mode = fw_grad_mode;
    autocast.put_back();
    if (python::saved_hooks_disabled_because() != no_saved_hooks)
      python::set_saved_hooks_disabled(no_saved_hooks);
    dispatch_modes.put_back();
    function_modes.put_back();
    python::set_function_state(overrides);
  }
};

struct SettingsObject {
  PyObject_HEAD Settings* settings;
};

// ThreadSettings(((owner, name), ...), stages): the settings as they are now, with these
// attributes.
PyObject* settings_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *pairs = nullptr, *stages = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!:ThreadSettings", &PyTuple_Type, &pairs, &PyList_Type, &stages))
    return nullptr;
  return guarded([&] {
    auto made = std::make_unique<Settings>();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); ++i) {
      PyObject* owner = nullptr;
      const char* name = nullptr;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, i), "Os", &owner, &name))
        throw python::python_error();
      made->attributes.push_back(Attribute::of(owner, name));
    }
    made->stages = PyRef::borrow(stages);
    made->stage_count = PyList_GET_SIZE(stages);
    PyRef self = checked(type->tp_alloc(type, 0));
    reinterpret_cast<SettingsObject*>(self.get())->settings = made.release();
    return self.release();
  });
}

void settings_dealloc(PyObject* self) {
  delete reinterpret_cast<SettingsObject*>(self)->settings;
  Py_TYPE(self)->tp_free(self);
}

PyObject* settings_put_back(PyObject* self, PyObject*) {
  return guarded([&] {
    reinterpret_cast<SettingsObject*>(self)->settings->put_back();
    return python::new_none();
  });
}

PyMethodDef settings_methods[] = {
    {"put_back", settings_put_back, METH_NOARGS, "Makes the settings those again."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_thread_settings(PyObject* module) {
  SettingsType.tp_basicsize = sizeof(SettingsObject);
  SettingsType.tp_flags = Py_TPFLAGS_DEFAULT;
  SettingsType.tp_new = settings_new;
  SettingsType.tp_dealloc = settings_dealloc;
  SettingsType.tp_methods = settings_methods;
  SettingsType.tp_doc = "ThreadSettings(((owner, name), ...), stages): what a compilation changes.";
  return python::add_type(module, &SettingsType);
}

} // namespace torch::dynamo
