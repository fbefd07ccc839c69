// What was compiled for each code object, and the choice among it.
#include <torch/csrc/dynamo/eval_frame.h>

#include <structmember.h>

namespace torch::dynamo {

PyTypeObject EntryType = python::type_object("torch._C._dynamo.eval_frame.CompiledEntry");
PyTypeObject CacheType = python::type_object("torch._C._dynamo.eval_frame.CodeCache");

namespace {

using python::checked;
using python::guarded;

CacheObject* as_cache(PyObject* o) { return reinterpret_cast<CacheObject*>(o); }
EntryObject* as_entry(PyObject* o) { return reinterpret_cast<EntryObject*>(o); }

CacheObject* all_caches = nullptr;

// ---- entries

PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"code", "guards", "backend", "globals", "has_break", nullptr};
  PyObject *code = nullptr, *guards = Py_None, *backend = Py_None, *globals = nullptr;
  int has_break = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OOO!p:CompiledEntry",
                                   const_cast<char**>(names), &PyCode_Type, &code, &guards,
                                   &backend, &PyDict_Type, &globals, &has_break)) {
    return nullptr;
  }
  if (guards != Py_None && !is_root(guards)) {
    PyErr_SetString(PyExc_TypeError, "CompiledEntry: guards must be a RootGuardManager or None");
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  EntryObject* entry = as_entry(self);
  entry->code = PyRef::borrow(code).release();
  entry->guards = PyRef::borrow(guards).release();
  entry->backend = PyRef::borrow(backend).release();
  entry->globals = globals ? PyRef::borrow(globals).release() : PyDict_New();
  entry->has_break = static_cast<char>(has_break);
  CacheObject* own = entry->globals ? cache_of(code, true) : nullptr;
  if (!own) {
    Py_DECREF(self);
    return nullptr;
  }
  own->compiled = 1;
  return self;
}

int entry_traverse(PyObject* self, visitproc visit, void* arg) {
  EntryObject* entry = as_entry(self);
  Py_VISIT(entry->code);
  Py_VISIT(entry->guards);
  Py_VISIT(entry->backend);
  Py_VISIT(entry->globals);
  Py_VISIT(entry->function);
  Py_VISIT(entry->dict);
  return 0;
}
int entry_clear(PyObject* self) {
  EntryObject* entry = as_entry(self);
  Py_CLEAR(entry->function);
  Py_CLEAR(entry->dict);
  Py_CLEAR(entry->backend);
  Py_CLEAR(entry->guards);
  return 0;
}
void entry_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (as_entry(self)->weakrefs) PyObject_ClearWeakRefs(self);
  entry_clear(self);
  Py_XDECREF(as_entry(self)->code);
  Py_XDECREF(as_entry(self)->globals);
  Py_TYPE(self)->tp_free(self);
}
PyMemberDef entry_members[] = {
    {"code", T_OBJECT, offsetof(EntryObject, code), READONLY, nullptr},
    {"guards", T_OBJECT, offsetof(EntryObject, guards), READONLY, nullptr},
    {"guard_manager", T_OBJECT, offsetof(EntryObject, guards), READONLY, nullptr},
    {"backend", T_OBJECT, offsetof(EntryObject, backend), READONLY, nullptr},
    {"has_break", T_BOOL, offsetof(EntryObject, has_break), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef with_dict[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- caches

int cache_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_cache(self)->entries);
  Py_VISIT(as_cache(self)->dict);
  return 0;
}
int cache_clear(PyObject* self) {
  if (as_cache(self)->entries)
    PyList_SetSlice(as_cache(self)->entries, 0, PyList_GET_SIZE(as_cache(self)->entries), nullptr);
  Py_CLEAR(as_cache(self)->dict);
  return 0;
}
void cache_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  CacheObject* cache = as_cache(self);
  if (cache->weakrefs) PyObject_ClearWeakRefs(self);
  (cache->prev ? cache->prev->next : all_caches) = cache->next;
  if (cache->next) cache->next->prev = cache->prev;
  Py_CLEAR(cache->entries);
  Py_CLEAR(cache->dict);
  Py_TYPE(self)->tp_free(self);
}
PyMemberDef cache_members[] = {
    {"entries", T_OBJECT, offsetof(CacheObject, entries), READONLY,
     "Compiled forms, the one used last first."},
    {"skip", T_BOOL, offsetof(CacheObject, skip), 0, "The code runs as it is."},
    {"run_only", T_BOOL, offsetof(CacheObject, run_only), 0, "No other form is made."},
    {"compiled", T_BOOL, offsetof(CacheObject, compiled), 0, "The code was made by the compiler."},
    {nullptr, 0, 0, 0, nullptr}};

PyRef new_cache(PyObject* code) {
  PyRef out = checked(CacheType.tp_alloc(&CacheType, 0));
  CacheObject* cache = as_cache(out.get());
  cache->code = code;
  cache->next = all_caches;
  if (all_caches) all_caches->prev = cache;
  all_caches = cache;
  cache->entries = checked(PyList_New(0)).release();
  return out;
}

#if PY_VERSION_HEX >= 0x030C0000
#define _PyEval_RequestCodeExtraIndex PyUnstable_Eval_RequestCodeExtraIndex
#define _PyCode_GetExtra PyUnstable_Code_GetExtra
#define _PyCode_SetExtra PyUnstable_Code_SetExtra
#endif

// Runs when a code object dies.
void release_cache(void* cache) {
  if (!cache) return;
  as_cache(static_cast<PyObject*>(cache))->code = nullptr;
  Py_DECREF(static_cast<PyObject*>(cache));
}

Py_ssize_t extra_index() {
  static const Py_ssize_t index = _PyEval_RequestCodeExtraIndex(release_cache);
  return index;
}

} // namespace

CacheObject* cache_of(PyObject* code, bool make) {
  void* extra = nullptr;
  const Py_ssize_t index = extra_index();
  if (index < 0 || _PyCode_GetExtra(code, index, &extra) < 0) {
    PyErr_Clear();
    if (make) PyErr_SetString(PyExc_RuntimeError, "this code object can hold no compiled form");
    return nullptr;
  }
  if (extra || !make) return as_cache(static_cast<PyObject*>(extra));
  PyObject* cache = guarded([&] { return new_cache(code).release(); });
  if (!cache) return nullptr;
  if (_PyCode_SetExtra(code, index, cache) < 0) {
    Py_DECREF(cache);
    return nullptr;
  }
  return as_cache(cache);
}

// ---- choice

namespace {

// The function of an entry. One that reads a closure is made for each call: kept, it would keep
// what the cells hold alive after the program's own function has died.
PyRef function_for(EntryObject* entry, PyObject* closure) {
  if (entry->function) return PyRef::borrow(entry->function);
  PyRef made(PyFunction_New(entry->code, entry->globals));
  if (!made) return made;
  if (closure && PyCode_GetNumFree(reinterpret_cast<PyCodeObject*>(entry->code)) > 0) {
    if (PyFunction_SetClosure(made.get(), closure) < 0) return PyRef();
    return made;
  }
  Py_XSETREF(entry->function, PyRef::borrow(made.get()).release());
  return made;
}

PyObject* call_entry(const PyRef& held, PyObject* closure, const BoundFrame& frame,
                     const ThreadState& state) {
  EntryObject* entry = as_entry(held.get());
  const PyRef kept = function_for(entry, closure);
  if (!kept) return nullptr;
  const size_t cells = closure ? static_cast<size_t>(PyTuple_GET_SIZE(closure)) : 0;
  const size_t count = frame.values.size() - cells;
  if (entry->has_break) {
    const StateScope scope(state.callback, state.backend, state.run_only);
    return PyObject_Vectorcall(kept.get(), frame.values.data(), count, nullptr);
  }
  if (!thread_state().callback && !thread_state().run_only)
    return PyObject_Vectorcall(kept.get(), frame.values.data(), count, nullptr);
  const StateScope scope(nullptr, nullptr);
  return PyObject_Vectorcall(kept.get(), frame.values.data(), count, nullptr);
}

// Guards may run the program's code (`__getitem__`, `__eq__`), which runs as it is: compiled forms
// of that code may have the same guards.
class GuardScope {
 public:
  GuardScope() : saved_(thread_state()) { thread_state() = ThreadState(); }
  ~GuardScope() { thread_state() = saved_; }
  GuardScope(const GuardScope&) = delete;
  GuardScope& operator=(const GuardScope&) = delete;

 private:
  ThreadState saved_;
};

// The first entry whose guards hold, moved to the front; null where none does.
// With `any` the forms of all backends are looked at.
PyRef find_entry(CacheObject* cache, PyObject* backend, bool any, const BoundFrame& frame) {
  PyObject* entries = cache->entries;
  FrameView view;
  view.values = frame.values.data();
  view.count = frame.values.size();
  const GuardScope scope;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); ++i) {
    PyRef held = PyRef::borrow(PyList_GET_ITEM(entries, i));
    EntryObject* entry = as_entry(held.get());
    if (!any && entry->backend != backend) continue;
    if (entry->guards != Py_None) {
      const PyRef guards = PyRef::borrow(entry->guards);
      if (!guards || !check_root(as_manager(guards.get()), Py_None, view)) continue;
    }
    if (i > 0 && i < PyList_GET_SIZE(entries) && PyList_GET_ITEM(entries, i) == held.get()) {
      for (Py_ssize_t j = i; j > 0; --j)
        PyList_SET_ITEM(entries, j, PyList_GET_ITEM(entries, j - 1));
      PyList_SET_ITEM(entries, 0, held.get());
    }
    return held;
  }
  return PyRef();
}

// {name: value} of the parameters.
PyRef locals_dict(PyObject* code, const BoundFrame& frame, size_t count) {
  PyRef names = checked(PyObject_GetAttrString(code, "co_varnames"));
  PyRef out = checked(PyDict_New());
  for (size_t i = 0; i < count; ++i) {
    if (!frame.values[i]) continue;
    python::check_status(PyDict_SetItem(
        out.get(), PyTuple_GET_ITEM(names.get(), static_cast<Py_ssize_t>(i)), frame.values[i]));
  }
  return out;
}

PyRef compile(PyObject* code, PyObject* globals, PyObject* closure, const BoundFrame& frame,
              const ThreadState& state, CacheObject* cache) {
  const size_t cells = closure ? static_cast<size_t>(PyTuple_GET_SIZE(closure)) : 0;
  PyRef locals = locals_dict(code, frame, frame.values.size() - cells);
  const PyRef callback = PyRef::borrow(state.callback);
  const StateScope off(nullptr, nullptr);
  return checked(PyObject_CallFunctionObjArgs(callback.get(), code, globals,
                                              closure ? closure : Py_None, locals.get(),
                                              reinterpret_cast<PyObject*>(cache), nullptr));
}

} // namespace

Verdict run_compiled(PyObject* code, PyObject* globals, PyObject* closure, const BoundFrame& frame,
                     const ThreadState& given, PyObject*& result) {
  CacheObject* cache = cache_of(code, given.callback != nullptr);
  if (!cache) {
    if (!PyErr_Occurred()) return Verdict::Skip;
    PyErr_Clear();
    return Verdict::Skip;
  }
  const PyRef kept = PyRef::borrow(reinterpret_cast<PyObject*>(cache));
  if (cache->compiled || (cache->skip && PyList_GET_SIZE(cache->entries) == 0))
    return Verdict::Skip;
  const ThreadState state = given;
  PyRef entry = find_entry(cache, state.backend, state.run_only, frame);
  if (!entry) {
    if (cache->run_only) return Verdict::SkipBelow;
    if (!state.callback || cache->skip) return Verdict::Skip;
    PyObject* made =
        guarded([&] { return compile(code, globals, closure, frame, state, cache).release(); });
    if (!made) return Verdict::Failed;
    PyRef outcome(made);
    if (outcome.get() == Py_None) cache->skip = 1;
    if (Py_TYPE(outcome.get()) != &EntryType)
      return cache->run_only ? Verdict::SkipBelow : Verdict::Skip;
    // Another thread may have made it while this one waited.
    const int known = PySequence_Contains(cache->entries, outcome.get());
    if (known < 0 || (!known && PyList_Insert(cache->entries, 0, outcome.get()) < 0))
      return Verdict::Failed;
    entry = std::move(outcome);
  }
  result = call_entry(entry, closure, frame, state);
  return Verdict::Run;
}

// ---- the module's functions about caches

namespace {

PyObject* py_reset_code(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) {
    PyErr_SetString(PyExc_TypeError, "reset_code: expected a code object");
    return nullptr;
  }
  if (CacheObject* cache = cache_of(code, false)) {
    const PyRef kept = PyRef::borrow(reinterpret_cast<PyObject*>(cache));
    if (cache->compiled) return python::new_none();
    cache_clear(kept.get());
    cache->skip = cache->run_only = 0;
  }
  return python::new_none();
}

PyObject* py_reset_all(PyObject*, PyObject*) {
  std::vector<PyRef> caches;
  for (CacheObject* cache = all_caches; cache; cache = cache->next)
    caches.push_back(PyRef::borrow(reinterpret_cast<PyObject*>(cache)));
  for (const PyRef& held : caches) {
    CacheObject* cache = as_cache(held.get());
    if (cache->compiled) continue;
    cache_clear(held.get());
    cache->skip = cache->run_only = 0;
  }
  return python::new_none();
}

PyObject* code_argument(PyObject* given) {
  return PyFunction_Check(given) ? PyFunction_GET_CODE(given) : given;
}

PyObject* py_skip_code(PyObject*, PyObject* code) {
  code = code_argument(code);
  if (!PyCode_Check(code)) {
    PyErr_SetString(PyExc_TypeError, "skip_code: expected a code object");
    return nullptr;
  }
  CacheObject* cache = cache_of(code, true);
  if (!cache) return nullptr;
  cache->skip = 1;
  return python::new_none();
}

PyObject* py_entry_list(PyObject*, PyObject* code) {
  code = code_argument(code);
  if (!PyCode_Check(code)) {
    PyErr_SetString(PyExc_TypeError, "expected a code object!");
    return nullptr;
  }
  CacheObject* cache = cache_of(code, false);
  return cache ? PySequence_List(cache->entries) : PyList_New(0);
}

PyObject* py_code_cache(PyObject*, PyObject* code) {
  code = code_argument(code);
  if (!PyCode_Check(code)) {
    PyErr_SetString(PyExc_TypeError, "expected a code object!");
    return nullptr;
  }
  CacheObject* cache = cache_of(code, true);
  return cache ? PyRef::borrow(reinterpret_cast<PyObject*>(cache)).release() : nullptr;
}

PyMethodDef functions[] = {
    {"reset_code", py_reset_code, METH_O, "Forgets what was compiled for a code object."},
    {"reset_all", py_reset_all, METH_NOARGS, "Forgets everything that was compiled."},
    {"skip_code", py_skip_code, METH_O, "A code object is not to be compiled."},
    {"_debug_get_cache_entry_list", py_entry_list, METH_O, "The compiled forms of a code object."},
    {"code_cache", py_code_cache, METH_O, "The CodeCache of a code object."},
    {nullptr, nullptr, 0, nullptr}};

void fill_type(PyTypeObject* type, size_t size, Py_ssize_t dict, Py_ssize_t weakrefs) {
  type->tp_basicsize = static_cast<Py_ssize_t>(size);
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  type->tp_dictoffset = dict;
  type->tp_weaklistoffset = weakrefs;
  type->tp_getset = with_dict;
}

} // namespace

bool init_code_cache(PyObject* module) {
  fill_type(&EntryType, sizeof(EntryObject), offsetof(EntryObject, dict),
            offsetof(EntryObject, weakrefs));
  EntryType.tp_new = entry_new;
  EntryType.tp_traverse = entry_traverse;
  EntryType.tp_clear = entry_clear;
  EntryType.tp_dealloc = entry_dealloc;
  EntryType.tp_members = entry_members;
  EntryType.tp_doc = "CompiledEntry(code, guards=None, backend=None, globals=..., has_break=False)";
  fill_type(&CacheType, sizeof(CacheObject), offsetof(CacheObject, dict),
            offsetof(CacheObject, weakrefs));
  CacheType.tp_traverse = cache_traverse;
  CacheType.tp_clear = cache_clear;
  CacheType.tp_dealloc = cache_dealloc;
  CacheType.tp_members = cache_members;
  CacheType.tp_doc = "What was compiled for one code object.";
  return python::add_type(module, &EntryType) && python::add_type(module, &CacheType) &&
         PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::dynamo
