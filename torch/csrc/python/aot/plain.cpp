// Calls of compiled graphs that need no Python between: a graph without a derivative, and a boxed
// function that is called with its arguments one by one. As closures they cost a call five frames,
// as much as a small graph computes.
#include <torch/csrc/python/aot/aot.h>

#include <algorithm>

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/inductor/inductor.h>

namespace torch::python {
namespace {

PyTypeObject UntrainedType = type_object("torch._C._aot.UntrainedFunction");
PyTypeObject FlatType = type_object("torch._C._aot.FlatFunction");

// ---- graphs without a derivative ----------------------------------------------------------------
struct UntrainedObject {
  PyObject_HEAD vectorcallfunc call;
  PyObject* graph;
  PyObject* plan; // behind the graph, once it is known
  Py_ssize_t returns;
  bool recorded;
};
UntrainedObject* as_untrained(PyObject* o) { return reinterpret_cast<UntrainedObject*>(o); }

// How many of the outputs are wanted: the first `count`, or all.
Py_ssize_t wanted(Py_ssize_t there, Py_ssize_t count) {
  return count < 0 ? there : std::min(count, there);
}

// Those as a list.
PyRef listed(const std::vector<at::IValue>& outputs, Py_ssize_t count) {
  const Py_ssize_t n = wanted(static_cast<Py_ssize_t>(outputs.size()), count);
  PyRef list = checked(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), i, from_ivalue(outputs[static_cast<size_t>(i)], nullptr).release());
  return list;
}

// The same of what a function that is no plan returned: a list, a tuple or a lone value.
PyRef listed(const PyRef& found, Py_ssize_t count) {
  PyObject* o = found.get();
  if (PyList_Check(o) || PyTuple_Check(o)) {
    PyRef list = PyList_Check(o) ? found : checked(PySequence_List(o));
    const Py_ssize_t there = PyList_GET_SIZE(list.get()), n = wanted(there, count);
    return n == there ? list : checked(PyList_GetSlice(list.get(), 0, n));
  }
  PyRef list = checked(PyList_New(0));
  check_status(PyList_Append(list.get(), o));
  return list;
}

PyObject* call_untrained(PyObject* object, PyObject* const* args, size_t nargsf,
                         PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames || !PyList_Check(args[0]))
      raise_type_error("a compiled function takes one list of arguments");
    const PyRef kept = PyRef::borrow(object);
    UntrainedObject* self = as_untrained(object);
    const PyRef graph = PyRef::borrow(self->graph);
    if (!graph) raise(PyExc_ReferenceError, "UntrainedFunction: the graph was collected");
    const autograd::AutoGradMode mode(!self->recorded && c10::GradMode::is_enabled());
    const Py_ssize_t returns = self->returns;
    if (!self->plan) self->plan = plan_behind(graph.get(), "run").release();
    if (const PyRef plan = PyRef::borrow(self->plan)) {
      std::vector<at::IValue> inputs = graph_values(args[0]);
      return listed(run_compiled_graph(plan.get(), inputs), returns).release();
    }
    return listed(checked(PyObject_CallOneArg(graph.get(), args[0])), returns).release();
  });
}

// UntrainedFunction(graph, returns, recorded)
PyObject* untrained_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* graph = nullptr;
    Py_ssize_t returns = 0;
    int recorded = 0;
    if (!PyArg_ParseTuple(args, "Onp:UntrainedFunction", &graph, &returns, &recorded))
      throw python_error();
    PyRef made = checked(type->tp_alloc(type, 0));
    UntrainedObject* self = as_untrained(made.get());
    self->call = call_untrained;
    self->graph = Py_NewRef(graph);
    self->returns = returns;
    self->recorded = recorded != 0;
    return made.release();
  });
}

int traverse_untrained(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_untrained(self)->graph);
  Py_VISIT(as_untrained(self)->plan);
  return 0;
}
int clear_untrained(PyObject* self) {
  Py_CLEAR(as_untrained(self)->graph);
  Py_CLEAR(as_untrained(self)->plan);
  return 0;
}
void dealloc_untrained(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear_untrained(self);
  Py_TYPE(self)->tp_free(self);
}
PyObject* get_boxed(PyObject*, void*) { return new_bool(true); }
PyGetSetDef untrained_members[] = {{"_boxed_call", get_boxed, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- arguments one by one -----------------------------------------------------------------------
struct FlatObject {
  PyObject_HEAD vectorcallfunc call;
  PyObject* boxed;
  PyObject* held; // list of what comes before the arguments
  PyObject* attributes;
  PyObject* weak_references;
};
FlatObject* as_flat(PyObject* o) { return reinterpret_cast<FlatObject*>(o); }

PyObject* call_flat(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (kwnames && PyTuple_GET_SIZE(kwnames) > 0)
      raise_type_error("a compiled graph takes no named arguments");
    const PyRef boxed = PyRef::borrow(as_flat(object)->boxed);
    const PyRef held = PyRef::borrow(as_flat(object)->held);
    if (!boxed || !held) raise(PyExc_ReferenceError, "FlatFunction: the graph was collected");
    const Py_ssize_t before = PyList_GET_SIZE(held.get()), given = PyVectorcall_NARGS(nargsf);
    const PyRef list = checked(PyList_New(before + given));
    for (Py_ssize_t i = 0; i < before; ++i)
      PyList_SET_ITEM(list.get(), i, Py_NewRef(PyList_GET_ITEM(held.get(), i)));
    for (Py_ssize_t i = 0; i < given; ++i)
      PyList_SET_ITEM(list.get(), before + i, Py_NewRef(args[i]));
    return checked(PyObject_CallOneArg(boxed.get(), list.get())).release();
  });
}

// FlatFunction(boxed, held)
PyObject* flat_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject *boxed = nullptr, *held = nullptr;
    if (!PyArg_ParseTuple(args, "OO!:FlatFunction", &boxed, &PyList_Type, &held))
      throw python_error();
    PyRef list = checked(PySequence_List(held));
    PyRef made = checked(type->tp_alloc(type, 0));
    FlatObject* self = as_flat(made.get());
    self->call = call_flat;
    self->boxed = Py_NewRef(boxed);
    self->held = list.release();
    return made.release();
  });
}

int traverse_flat(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_flat(self)->boxed);
  Py_VISIT(as_flat(self)->held);
  Py_VISIT(as_flat(self)->attributes);
  return 0;
}
int clear_flat(PyObject* self) {
  Py_CLEAR(as_flat(self)->boxed);
  Py_CLEAR(as_flat(self)->held);
  Py_CLEAR(as_flat(self)->attributes);
  return 0;
}
void dealloc_flat(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (as_flat(self)->weak_references) PyObject_ClearWeakRefs(self);
  clear_flat(self);
  Py_TYPE(self)->tp_free(self);
}
// Like a function it is its own copy.
PyObject* copy_flat(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyMethodDef flat_methods[] = {{"__copy__", copy_flat, METH_NOARGS, nullptr},
                              {"__deepcopy__", copy_flat, METH_O, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PyGetSetDef flat_members[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

PyRef plan_behind(PyObject* callable, const char* attribute) {
  PyRef found = PyRef::borrow(callable);
  for (const char* next : {attribute, "run"}) {
    if (compiled_of(found.get())) break;
    found = PyRef(PyObject_GetAttrString(found.get(), next));
    if (!found) {
      PyErr_Clear();
      return {};
    }
  }
  return compiled_of(found.get()) ? found : PyRef();
}

bool init_plain(PyObject* module) {
  constexpr unsigned long kFlags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  UntrainedType.tp_basicsize = sizeof(UntrainedObject);
  UntrainedType.tp_flags = kFlags;
  UntrainedType.tp_vectorcall_offset = offsetof(UntrainedObject, call);
  UntrainedType.tp_call = PyVectorcall_Call;
  UntrainedType.tp_new = untrained_new;
  UntrainedType.tp_traverse = traverse_untrained;
  UntrainedType.tp_clear = clear_untrained;
  UntrainedType.tp_dealloc = dealloc_untrained;
  UntrainedType.tp_getset = untrained_members;
  UntrainedType.tp_doc =
      "UntrainedFunction(graph, returns, recorded): a boxed function that runs a compiled graph "
      "and\n"
      "returns the first of its values, or all if the number is negative; without history where\n"
      "its operators would be recorded.";
  FlatType.tp_basicsize = sizeof(FlatObject);
  FlatType.tp_flags = kFlags;
  FlatType.tp_vectorcall_offset = offsetof(FlatObject, call);
  FlatType.tp_call = PyVectorcall_Call;
  FlatType.tp_new = flat_new;
  FlatType.tp_traverse = traverse_flat;
  FlatType.tp_clear = clear_flat;
  FlatType.tp_dealloc = dealloc_flat;
  FlatType.tp_dictoffset = offsetof(FlatObject, attributes);
  FlatType.tp_weaklistoffset = offsetof(FlatObject, weak_references);
  FlatType.tp_getattro = PyObject_GenericGetAttr;
  FlatType.tp_setattro = PyObject_GenericSetAttr;
  FlatType.tp_methods = flat_methods;
  FlatType.tp_getset = flat_members;
  FlatType.tp_doc = "FlatFunction(boxed, held): a function of arguments one by one, which come\n"
                    "after those held.";
  return add_type(module, &UntrainedType) && add_type(module, &FlatType);
}

} // namespace torch::python
