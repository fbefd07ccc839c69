// torch._C._dynamo.eval_frame: the callables that torch.compile and torch.compiler.disable return.
#include <torch/csrc/dynamo/eval_frame.h>

#include <structmember.h>

namespace torch::dynamo {

PyTypeObject CompiledFunctionType =
    python::type_object("torch._C._dynamo.eval_frame.CompiledFunction");

namespace {

using python::guarded;

// While set, nothing is compiled and nothing compiled is run (torch.compiler.set_stance).
bool force_eager = false;
// Not null: the backend that stands in for that of every function, for the same reason. Owned.
PyObject* forced_backend = nullptr;

struct FunctionObject {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function; // a Python function
  PyObject* callback; // compiles; null: see State
  PyObject* backend;
  char run_only; // uses compiled forms and makes none
  PyObject* dict;
  PyObject* weakrefs;
};

FunctionObject* as_function(PyObject* o) { return reinterpret_cast<FunctionObject*>(o); }

PyObject* backend_of(const FunctionObject* self) {
  return C10_UNLIKELY(forced_backend != nullptr) ? forced_backend : self->backend;
}

// fn as it is; calls below it are compiled.
PyObject* run_plain(FunctionObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                    bool run_only = false) {
  const PyRef function = PyRef::borrow(self->function);
  const StateScope scope(run_only ? nullptr : self->callback, backend_of(self),
                         run_only || self->run_only);
  thread_state().let_run = PyFunction_GET_CODE(function.get());
  return PyObject_Vectorcall(function.get(), args, nargsf, kwnames);
}

PyObject* call_compiled(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  FunctionObject* self = as_function(object);
  if (C10_UNLIKELY(force_eager)) {
    const PyRef function = PyRef::borrow(self->function);
    const StateScope off(nullptr, nullptr);
    return PyObject_Vectorcall(function.get(), args, nargsf, kwnames);
  }
  const PyRef function = PyRef::borrow(self->function), kept = PyRef::borrow(object);
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.get()));
  if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
    return run_plain(self, args, nargsf, kwnames);
  BoundFrame frame;
  const size_t nargs = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (!bind(function.get(), Parameters::of(code), args, nargs, kwnames, frame))
    return PyObject_Vectorcall(function.get(), args, nargsf, kwnames); // raises
  ThreadState state;
  state.callback = self->callback;
  state.backend = backend_of(self);
  state.run_only = self->run_only;
  const PyRef callback = PyRef::borrow(self->callback), backend = PyRef::borrow(state.backend),
              code_kept = PyRef::borrow(reinterpret_cast<PyObject*>(code));
  PyObject* result = nullptr;
  switch (run_compiled(code_kept.get(), PyFunction_GET_GLOBALS(function.get()),
                       PyFunction_GET_CLOSURE(function.get()), frame, state, result)) {
  case Verdict::Run:
    return result;
  case Verdict::Failed:
    return nullptr;
  case Verdict::SkipBelow:
    return run_plain(self, args, nargsf, kwnames, true);
  case Verdict::Skip:
    break;
  }
  return run_plain(self, args, nargsf, kwnames);
}

// The hook is off inside: what torch.compiler.disable marks.
PyObject* call_disabled(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const PyRef function = PyRef::borrow(as_function(object)->function);
  if (!thread_state().callback && !thread_state().run_only)
    return PyObject_Vectorcall(function.get(), args, nargsf, kwnames);
  const StateScope off(nullptr, nullptr);
  return PyObject_Vectorcall(function.get(), args, nargsf, kwnames);
}

PyObject* allocate(PyTypeObject* type, PyObject* function, vectorcallfunc call) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_function(self)->call = call;
  as_function(self)->function = PyRef::borrow(function).release();
  return self;
}

PyObject* compiled_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"function", "callback", "backend", "run_only", nullptr};
  PyObject *function = nullptr, *callback = nullptr, *backend = Py_None;
  int run_only = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|Op:CompiledFunction",
                                   const_cast<char**>(names), &PyFunction_Type, &function,
                                   &callback, &backend, &run_only)) {
    return nullptr;
  }
  if (callback != Py_None && !PyCallable_Check(callback)) {
    PyErr_SetString(PyExc_TypeError, "CompiledFunction: callback must be callable or None");
    return nullptr;
  }
  PyObject* self = allocate(type, function, call_compiled);
  if (!self) return nullptr;
  if (callback != Py_None) as_function(self)->callback = PyRef::borrow(callback).release();
  as_function(self)->backend = PyRef::borrow(backend).release();
  as_function(self)->run_only = static_cast<char>(run_only);
  return self;
}

PyTypeObject DisabledFunctionType =
    python::type_object("torch._C._dynamo.eval_frame.DisabledFunction");

PyObject* disabled_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"function", nullptr};
  PyObject* function = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:DisabledFunction", const_cast<char**>(names),
                                   &function)) {
    return nullptr;
  }
  if (!PyCallable_Check(function)) {
    PyErr_SetString(PyExc_TypeError, "DisabledFunction: expected something callable");
    return nullptr;
  }
  return allocate(type, function, call_disabled);
}

// ---- what both types share

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_function(self)->function);
  Py_VISIT(as_function(self)->callback);
  Py_VISIT(as_function(self)->backend);
  Py_VISIT(as_function(self)->dict);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(as_function(self)->dict);
  Py_CLEAR(as_function(self)->callback);
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (as_function(self)->weakrefs) PyObject_ClearWeakRefs(self);
  clear(self);
  Py_XDECREF(as_function(self)->backend);
  Py_XDECREF(as_function(self)->function);
  Py_TYPE(self)->tp_free(self);
}

// Attributes that the wrapper does not have are the function's.
PyObject* getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(as_function(self)->function, name);
}
PyObject* repr(PyObject* self) { return PyObject_Repr(as_function(self)->function); }
// A method of the instance it is read from.
PyObject* descr_get(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return PyRef::borrow(self).release();
  return PyMethod_New(self, instance);
}

template <const char* (*name)()> PyObject* forwarded(PyObject* self, void*) {
  PyObject* dict = as_function(self)->dict;
  PyObject* own = dict ? PyDict_GetItemString(dict, name()) : nullptr;
  if (own) return PyRef::borrow(own).release();
  return PyObject_GetAttrString(as_function(self)->function, name());
}
template <const char* (*name)()> int keep_own(PyObject* self, PyObject* value, void*) {
  FunctionObject* object = as_function(self);
  if (!object->dict) object->dict = PyDict_New();
  if (!object->dict) return -1;
  return value ? PyDict_SetItemString(object->dict, name(), value)
               : PyDict_DelItemString(object->dict, name());
}
// Pickled, as functions are, by name.
PyObject* reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(as_function(self)->function, "__qualname__");
}
PyObject* aot_compile(PyObject* self, PyObject* inputs) {
  PyRef module(PyImport_ImportModule("torch._dynamo.aot_compile"));
  if (!module) return nullptr;
  return PyObject_CallMethod(module.get(), "aot_compile_wrapped", "OO", self, inputs);
}
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"aot_compile", aot_compile, METH_O,
     "aot_compile((args, kwargs)): compiles for these arguments, to be saved."},
    {nullptr, nullptr, 0, nullptr}};

const char* doc_name() { return "__doc__"; }
const char* module_name() { return "__module__"; }

PyGetSetDef attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__doc__", forwarded<doc_name>, keep_own<doc_name>, nullptr, nullptr},
    {"__module__", forwarded<module_name>, keep_own<module_name>, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__wrapped__", T_OBJECT, offsetof(FunctionObject, function), READONLY, nullptr},
    {"_torchdynamo_orig_callable", T_OBJECT, offsetof(FunctionObject, function), READONLY, nullptr},
    {"callback", T_OBJECT, offsetof(FunctionObject, callback), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

bool add_function_type(PyObject* module, PyTypeObject* type, newfunc make, const char* doc) {
  type->tp_basicsize = sizeof(FunctionObject);
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  type->tp_vectorcall_offset = offsetof(FunctionObject, call);
  type->tp_call = PyVectorcall_Call;
  type->tp_new = make;
  type->tp_traverse = traverse;
  type->tp_clear = clear;
  type->tp_dealloc = dealloc;
  type->tp_getattro = getattro;
  type->tp_repr = repr;
  type->tp_descr_get = descr_get;
  type->tp_dictoffset = offsetof(FunctionObject, dict);
  type->tp_weaklistoffset = offsetof(FunctionObject, weakrefs);
  type->tp_getset = attributes;
  type->tp_members = members;
  type->tp_methods = methods;
  type->tp_doc = doc;
  return python::add_type(module, type);
}

// ---- functions of the module

// set_eval_frame(callback): how this thread treats new frames from now on; the previous setting.
// None: frames run as they are. False: compiled forms are used and none is made. A callable:
// compiles.
PyObject* py_set_eval_frame(PyObject*, PyObject* callback) {
  static thread_local StateScope* scope = nullptr;
  static thread_local PyObject* now = nullptr;
  if (callback != Py_None && callback != Py_False && !PyCallable_Check(callback)) {
    PyErr_SetString(PyExc_TypeError, "set_eval_frame: expected a callable, False or None");
    return nullptr;
  }
  PyRef before = now ? PyRef(now) : PyRef::borrow(Py_None);
  now = nullptr;
  delete scope;
  scope = nullptr;
  if (callback == Py_None) return before.release();
  PyRef backend(callback == Py_False ? nullptr : PyObject_GetAttrString(callback, "backend"));
  if (!backend) {
    PyErr_Clear();
    backend = PyRef::borrow(Py_None);
  }
  now = PyRef::borrow(callback).release();
  scope = new StateScope(callback == Py_False ? nullptr : callback, backend.get(),
                         callback == Py_False);
  return before.release();
}
PyObject* py_get_eval_frame(PyObject*, PyObject*) {
  const ThreadState& state = thread_state();
  if (state.run_only) return python::new_bool(false);
  return PyRef::borrow(state.callback ? state.callback : Py_None).release();
}
PyObject* py_set_forced_backend(PyObject*, PyObject* value) {
  Py_XINCREF(value == Py_None ? nullptr : value);
  Py_XSETREF(forced_backend, value == Py_None ? nullptr : value);
  return python::new_none();
}

PyObject* py_set_force_eager(PyObject*, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  const bool before = force_eager;
  force_eager = truth != 0;
  return python::new_bool(before);
}
PyObject* py_hook_supported(PyObject*, PyObject*) { return python::new_bool(hook_supported()); }

PyMethodDef functions[] = {
    {"set_eval_frame", py_set_eval_frame, METH_O,
     "How this thread treats new frames: None, False (compiled forms only) or a callback."},
    {"get_eval_frame_callback", py_get_eval_frame, METH_NOARGS,
     "The callback that compiles frames of this thread, or None."},
    {"set_force_eager", py_set_force_eager, METH_O, "Whether everything runs as it is."},
    {"set_forced_backend", py_set_forced_backend, METH_O,
     "The backend in place of every function's own, or None."},
    {"hook_supported", py_hook_supported, METH_NOARGS,
     "Whether frames below code that broke can be compiled on this Python."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_eval_frame(PyObject* module) {
  return init_code_cache(module) && init_graph_call(module) && init_thread_settings(module) &&
         add_function_type(module, &CompiledFunctionType, compiled_new,
                           "CompiledFunction(function, callback, backend=None, run_only=False)") &&
         add_function_type(module, &DisabledFunctionType, disabled_new,
                           "DisabledFunction(function): nothing below it is compiled.") &&
         PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::dynamo
