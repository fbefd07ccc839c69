// torch._C's interface to __torch_function__ state: the mode stack, the switches that turn
// overrides off, and the has_torch_function tests of Python code.
#include <torch/csrc/python/dispatch/function_modes.h>

#include <c10/core/DispatchKeySet.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/types/enum_type.h>

#include <algorithm>
#include <vector>

namespace torch::python {

int active_function_modes = 0;

namespace {

struct ThreadState {
  FunctionState state = FunctionState::Enabled;
  std::vector<PyObject*> modes; // owned; a thread that ends with modes pushed leaks them
  bool skips_next = false;      // the next has_torch_function test that would say yes says no
};
ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

void push_mode(PyObject* mode) {
  Py_INCREF(mode);
  thread_state().modes.push_back(mode);
  ++active_function_modes;
}

PyRef pop_mode() {
  std::vector<PyObject*>& modes = thread_state().modes;
  if (modes.empty()) raise(PyExc_RuntimeError, "the torch function mode stack is empty");
  PyRef mode(modes.back());
  modes.pop_back();
  --active_function_modes;
  return mode;
}

// ---- functions of the module --------------------------------------------------------------------
PyObject* py_push(PyObject*, PyObject* mode) {
  return guarded([&] {
    if (mode != Py_None) push_mode(mode);
    return new_none();
  });
}
PyObject* py_pop(PyObject*, PyObject*) {
  return guarded([] { return pop_mode().release(); });
}
PyObject* py_len(PyObject*, PyObject*) { return PyLong_FromSize_t(function_mode_count()); }
PyObject* py_at(PyObject*, PyObject* index) {
  const Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  const std::vector<PyObject*>& modes = thread_state().modes;
  if (i < 0 || static_cast<size_t>(i) >= modes.size()) {
    PyErr_Format(PyExc_IndexError, "torch function mode stack has %zu entries, asked for entry %zd",
                 modes.size(), i);
    return nullptr;
  }
  Py_INCREF(modes[i]);
  return modes[i];
}
PyObject* py_enabled(PyObject*, PyObject*) {
  return new_bool(function_state() == FunctionState::Enabled);
}
PyObject* py_all_disabled(PyObject*, PyObject*) {
  return new_bool(function_state() == FunctionState::AllDisabled);
}
PyObject* py_mode_enabled(PyObject*, PyObject*) { return new_bool(function_mode_active()); }

// Calls func with overrides of subclasses off: what `__torch_function__ = _disabled_...` means.
PyObject* py_disabled_function(PyObject*, PyObject* args) {
  PyObject *func = nullptr, *types = nullptr, *call_args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &func, &types, &call_args, &kwargs)) return nullptr;
  PyRef tuple(call_args && call_args != Py_None ? PySequence_Tuple(call_args) : PyTuple_New(0));
  if (!tuple) return nullptr;
  if (kwargs == Py_None) kwargs = nullptr;
  if (kwargs && !PyDict_Check(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "kwargs must be a dict");
    return nullptr;
  }
  const FunctionState saved = function_state();
  if (saved == FunctionState::Enabled) set_function_state(FunctionState::SubclassesDisabled);
  PyObject* result = PyObject_Call(func, tuple.get(), kwargs);
  set_function_state(saved);
  return result;
}
// Calls func with __torch_dispatch__ of subclasses off: what super().__torch_dispatch__ means.
PyObject* py_disabled_dispatch(PyObject*, PyObject* args) {
  PyObject *func = nullptr, *types = nullptr, *call_args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &func, &types, &call_args, &kwargs)) return nullptr;
  PyRef tuple(call_args && call_args != Py_None ? PySequence_Tuple(call_args) : PyTuple_New(0));
  if (!tuple) return nullptr;
  if (kwargs == Py_None) kwargs = nullptr;
  if (kwargs && !PyDict_Check(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "kwargs must be a dict");
    return nullptr;
  }
  c10::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet(c10::DispatchKey::Python)};
  return PyObject_Call(func, tuple.get(), kwargs);
}

bool any_override(PyObject* const* items, Py_ssize_t n) {
  bool found = function_mode_active();
  for (Py_ssize_t i = 0; i < n && !found; ++i) found = has_override(items[i]);
  if (C10_LIKELY(!found)) return false;
  const bool skip = thread_state().skips_next;
  thread_state().skips_next = false;
  return !skip;
}
// _skip_next_torch_function(on): whether the next test that finds an override says that there is
// none. Returns what held before.
PyObject* py_skip_next(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  const bool before = thread_state().skips_next;
  thread_state().skips_next = on != 0;
  return new_bool(before);
}
PyObject* py_has(PyObject*, PyObject* items) {
  PyRef fast(PySequence_Fast(items, "expected a sequence"));
  if (!fast) return nullptr;
  return new_bool(
      any_override(PySequence_Fast_ITEMS(fast.get()), PySequence_Fast_GET_SIZE(fast.get())));
}
PyObject* py_has_unary(PyObject*, PyObject* item) { return new_bool(any_override(&item, 1)); }
PyObject* py_has_variadic(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return new_bool(any_override(args, n));
}

constexpr EnumMember kStates[] = {{"ENABLED", 0}, {"SUBCLASSES_DISABLED", 1}, {"ALL_DISABLED", 2}};
PyObject* state_type = nullptr;

PyObject* py_get_state(PyObject*, PyObject*) {
  return enum_member(state_type, static_cast<long>(function_state()));
}
PyObject* py_set_state(PyObject*, PyObject* value) {
  const long state = PyLong_AsLong(value);
  if (state == -1 && PyErr_Occurred()) return nullptr;
  if (state < 0 || state > 2) {
    PyErr_SetString(PyExc_ValueError, "expected a _TorchFunctionState");
    return nullptr;
  }
  set_function_state(static_cast<FunctionState>(state));
  return new_none();
}

PyMethodDef functions[] = {
    {"_push_on_torch_function_stack", py_push, METH_O, nullptr},
    {"_pop_torch_function_stack", py_pop, METH_NOARGS, nullptr},
    {"_len_torch_function_stack", py_len, METH_NOARGS, nullptr},
    {"_get_function_stack_at", py_at, METH_O, nullptr},
    {"_is_torch_function_enabled", py_enabled, METH_NOARGS, nullptr},
    {"_is_torch_function_all_disabled", py_all_disabled, METH_NOARGS, nullptr},
    {"_is_torch_function_mode_enabled", py_mode_enabled, METH_NOARGS, nullptr},
    {"_disabled_torch_function_impl", py_disabled_function, METH_VARARGS, nullptr},
    {"_disabled_torch_dispatch_impl", py_disabled_dispatch, METH_VARARGS, nullptr},
    {"_has_torch_function", py_has, METH_O, nullptr},
    {"_has_torch_function_unary", py_has_unary, METH_O, nullptr},
    {"_has_torch_function_variadic", as_method(py_has_variadic), METH_FASTCALL, nullptr},
    {"_skip_next_torch_function", py_skip_next, METH_O, nullptr},
    {"_get_torch_function_state", py_get_state, METH_NOARGS, nullptr},
    {"_set_torch_function_state", py_set_state, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- context managers ---------------------------------------------------------------------------
struct Switch {
  PyObject_HEAD FunctionState saved;
  bool entered;
};

template <FunctionState kState> PyObject* switch_enter(PyObject* self, PyObject*) {
  auto* object = reinterpret_cast<Switch*>(self);
  object->saved = function_state();
  object->entered = true;
  // The weaker switch inside the stronger one changes nothing.
  if (object->saved < kState || kState == FunctionState::Enabled) set_function_state(kState);
  return new_none();
}
PyObject* switch_exit(PyObject* self, PyObject*) {
  auto* object = reinterpret_cast<Switch*>(self);
  if (object->entered) set_function_state(object->saved);
  object->entered = false;
  return new_none();
}

template <FunctionState kState> bool add_switch(PyObject* module, PyTypeObject& type) {
  static PyMethodDef methods[] = {{"__enter__", switch_enter<kState>, METH_NOARGS, nullptr},
                                  {"__exit__", switch_exit, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  type.tp_basicsize = sizeof(Switch);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_methods = methods;
  type.tp_new = PyType_GenericNew;
  return add_type(module, &type);
}

PyTypeObject DisableSubclassType = type_object("torch._C.DisableTorchFunctionSubclass");
PyTypeObject EnableType = type_object("torch._C._EnableTorchFunction");
PyTypeObject DisableAllType = type_object("torch._C.DisableTorchFunction");

} // namespace

FunctionState function_state() noexcept { return thread_state().state; }
void set_function_state(FunctionState state) noexcept { thread_state().state = state; }
size_t function_mode_count() noexcept {
  return active_function_modes ? thread_state().modes.size() : 0;
}
bool overrides_enabled() noexcept { return function_state() == FunctionState::Enabled; }

bool function_mode_active_slow() noexcept {
  const ThreadState& state = thread_state();
  return !state.modes.empty() && state.state != FunctionState::AllDisabled;
}

FunctionModeOff::FunctionModeOff() : mode_(pop_mode()) {}
FunctionModeOff::~FunctionModeOff() { push_mode(mode_.get()); }

FunctionModes FunctionModes::now() {
  FunctionModes out;
  for (PyObject* mode : thread_state().modes) out.modes_.push_back(PyRef::borrow(mode));
  return out;
}
void FunctionModes::put_back() const {
  const std::vector<PyObject*>& open = thread_state().modes;
  const bool same = std::equal(open.begin(), open.end(), modes_.begin(), modes_.end(),
                               [](PyObject* a, const PyRef& b) { return a == b.get(); });
  if (same) return;
  while (!open.empty()) pop_mode();
  for (const PyRef& mode : modes_) push_mode(mode.get());
}

bool init_function_modes(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return false;
  disabled_torch_function = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  disabled_torch_dispatch = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  state_type = add_enum(module, "torch._C._TorchFunctionState", kStates, 3);
  return disabled_torch_function && disabled_torch_dispatch && state_type &&
         add_switch<FunctionState::Enabled>(module, EnableType) &&
         add_switch<FunctionState::SubclassesDisabled>(module, DisableSubclassType) &&
         add_switch<FunctionState::AllDisabled>(module, DisableAllType);
}

} // namespace torch::python
