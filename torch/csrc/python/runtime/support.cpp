// Small helpers over the C API that are not worth inlining.
#include <torch/csrc/python/runtime/support.h>

#include <cstring>

#include <cxxabi.h>
#include <unistd.h>

namespace torch::python {

// ---- Note [Threads at interpreter exit] ---------------------------------------------------------
bool interpreter_closes = false;

bool holds_gil() noexcept {
#if PY_VERSION_HEX >= 0x030d0000
  const PyThreadState* running = PyThreadState_GetUnchecked();
#else
  const PyThreadState* running = _PyThreadState_UncheckedGet();
#endif
  return running != nullptr && running == PyGILState_GetThisThreadState();
}

void park_thread() noexcept {
  for (;;) pause();
}

PyGILState_STATE take_gil() noexcept {
  // A thread that Python does not know would be given a state that nobody clears.
  if (C10_UNLIKELY(!Py_IsInitialized()) && !holds_gil()) park_thread();
  try {
    return PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {
    park_thread();
  }
}

void restore_thread(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    park_thread();
  }
}

void drop_at_exit(PyObject* p) noexcept {
  if (!p || !python_exists()) return;
  if (!holds_gil()) park_thread();
  Py_DECREF(p);
}

bool watch_interpreter_exit() {
  static PyMethodDef callback = {"_interpreter_closes",
                                 [](PyObject*, PyObject*) {
                                   interpreter_closes = true;
                                   return new_none();
                                 },
                                 METH_NOARGS, nullptr};
  const PyRef function(PyCFunction_New(&callback, nullptr));
  const PyRef module(PyImport_ImportModule("atexit"));
  if (!function || !module) return false;
  return PyRef(PyObject_CallMethod(module.get(), "register", "O", function.get())).get() != nullptr;
}

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
