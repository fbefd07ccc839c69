// The call of a compiled graph with parts of the frame's values.
//
// The graph of a model takes hundreds of parameters, each behind several dictionaries; reading them
// by bytecode took longer than everything else in a compiled call. A GraphCall is called with the
// few objects that hold them and hands the parts to the graph as one vector. Where they were found
// is kept as a record (Note [Records of unchanged values]): while its words stand, the same objects
// are in the same places. Objects are remembered by address and held only during the call.
#include <torch/csrc/dynamo/eval_frame.h>
#include <torch/csrc/dynamo/guard_record.h>

#include <algorithm>

namespace torch::dynamo {
namespace {

using python::check_status;
using python::checked;
using python::guarded;

PyTypeObject GraphCallType = python::type_object("torch._C._dynamo.eval_frame.GraphCall");

// What the steps lead to from one set of objects.
struct Found {
  std::vector<PyObject*> bases; // compared, never followed
  std::unique_ptr<Record> record;
  std::vector<PyObject*> values; // of all steps
};

struct Plan {
  size_t roots = 0;          // arguments of the GraphCall
  std::vector<size_t> bases; // those of them that steps begin at
  std::vector<ReadStep> steps;
  std::vector<size_t> outputs; // arguments of the graph: places among roots and steps
  std::vector<Found> found;
  size_t next = 0;
  long hits = 0, misses = 0;

  Found* find(PyObject* const* args);
  bool fetch(PyObject* const* args, std::vector<PyRef>& out) const;
  void note(PyObject* const* args);
};

struct GraphCallObject {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
  Plan* plan;
};
GraphCallObject* as_call(PyObject* o) { return reinterpret_cast<GraphCallObject*>(o); }

Found* Plan::find(PyObject* const* args) {
  for (Found& one : found) {
    bool same = true;
    for (size_t i = 0; same && i < bases.size(); ++i) same = one.bases[i] == args[bases[i]];
    if (same) return &one;
  }
  return nullptr;
}

// Reads every part; false with an error set. The values of the steps are appended.
bool Plan::fetch(PyObject* const* args, std::vector<PyRef>& out) const {
  const FrameView view;
  for (const ReadStep& step : steps) {
    const AccessorObject* accessor = as_accessor(step.accessor.get());
    PyObject* base = step.base < roots ? args[step.base] : out[step.base - roots].get();
    PyRef owned;
    PyObject* part = dynamo::fetch(accessor, base, view, owned);
    if (!part) {
      if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, accessor->key);
      return false;
    }
    out.push_back(PyRef::borrow(part));
  }
  return true;
}

// After the parts were read: objects that are seen again get a record, unless they keep changing.
void Plan::note(PyObject* const* args) {
  constexpr long kPatience = 8, kHitsPerMiss = 16;
  constexpr size_t kSlots = 32;
  if (++misses > kPatience + hits / kHitsPerMiss + static_cast<long>(kSlots)) return;
  if (Found* known = find(args)) {
    known->values.assign(args, args + roots);
    known->record = Record::follow(steps, known->values);
    known->values.erase(known->values.begin(), known->values.begin() + static_cast<long>(roots));
    return;
  }
  Found made;
  for (const size_t base : bases) made.bases.push_back(args[base]);
  if (found.size() < kSlots) {
    found.push_back(std::move(made));
  } else {
    found[next] = std::move(made);
    next = (next + 1) % kSlots;
  }
}

PyObject* call_graph(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const PyRef kept = PyRef::borrow(object), function = PyRef::borrow(as_call(object)->function);
  if (!function) {
    PyErr_SetString(PyExc_ReferenceError, "GraphCall: the graph was collected");
    return nullptr;
  }
  Plan& plan = *as_call(object)->plan;
  const auto given = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (given != plan.roots || (kwnames && PyTuple_GET_SIZE(kwnames) > 0)) {
    PyErr_Format(PyExc_TypeError, "GraphCall: expected %zu arguments, got %zu", plan.roots, given);
    return nullptr;
  }
  // One place before the arguments is the callee's to use.
  c10::SmallVector<PyObject*, 64> vector(plan.outputs.size() + 1, nullptr);
  const Found* found = plan.find(args);
  std::vector<PyRef> fetched;
  if (C10_LIKELY(found && found->record &&
                 found->record->check(FrameView()) == Record::Outcome::Holds)) {
    ++plan.hits;
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const size_t place = plan.outputs[i];
      vector[i + 1] = place < plan.roots ? args[place] : found->values[place - plan.roots];
    }
  } else {
    if (!plan.fetch(args, fetched)) return nullptr;
    plan.note(args);
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const size_t place = plan.outputs[i];
      vector[i + 1] = place < plan.roots ? args[place] : fetched[place - plan.roots].get();
    }
  }
  for (size_t i = 1; i < vector.size(); ++i) Py_INCREF(vector[i]);
  PyObject* result =
      PyObject_Vectorcall(function.get(), vector.data() + 1,
                          plan.outputs.size() | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  for (size_t i = 1; i < vector.size(); ++i) Py_DECREF(vector[i]);
  return result;
}

// ---- building

size_t place_of(PyObject* number, size_t limit) {
  const size_t place = PyLong_AsSize_t(number);
  if (place == static_cast<size_t>(-1) && PyErr_Occurred()) throw python::python_error();
  if (place >= limit) python::raise(PyExc_ValueError, "GraphCall: a place that is not there yet");
  return place;
}

AccessorKind kind_of(PyObject* text) {
  const std::string name = python::text_of(text);
  if (name == "attr") return AccessorKind::GetAttr;
  if (name == "item") return AccessorKind::GetItem;
  if (name == "closure") return AccessorKind::FuncClosure;
  if (name == "cell") return AccessorKind::CellContents;
  python::raise(PyExc_ValueError, "GraphCall: no read is called " + name);
}

void read_plan(Plan& plan, PyObject* steps, PyObject* outputs) {
  const PyRef list = checked(PySequence_List(steps)), places = checked(PySequence_List(outputs));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject *base = nullptr, *kind = nullptr, *key = nullptr;
    const PyRef step = PyRef::borrow(PyList_GET_ITEM(list.get(), i));
    if (!PyTuple_Check(step.get()) ||
        !PyArg_ParseTuple(step.get(), "OOO:GraphCall", &base, &kind, &key)) {
      if (!PyErr_Occurred()) python::raise_type_error("GraphCall: a step is (base, kind, key)");
      throw python::python_error();
    }
    const size_t place = place_of(base, plan.roots + plan.steps.size());
    plan.steps.push_back({new_accessor(kind_of(kind), key, nullptr), place});
    const auto end = plan.bases.end();
    if (place < plan.roots && std::find(plan.bases.begin(), end, place) == end)
      plan.bases.push_back(place);
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places.get()); ++i)
    plan.outputs.push_back(
        place_of(PyList_GET_ITEM(places.get(), i), plan.roots + plan.steps.size()));
}

PyObject* call_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *function = nullptr, *steps = nullptr, *outputs = nullptr;
  Py_ssize_t roots = 0;
  if (!PyArg_ParseTuple(args, "OnOO:GraphCall", &function, &roots, &steps, &outputs))
    return nullptr;
  return guarded([&]() -> PyObject* {
    if (!PyCallable_Check(function))
      python::raise_type_error("GraphCall: expected something callable");
    auto plan = std::make_unique<Plan>();
    plan->roots = static_cast<size_t>(std::max<Py_ssize_t>(roots, 0));
    read_plan(*plan, steps, outputs);
    PyRef self = checked(type->tp_alloc(type, 0));
    as_call(self.get())->call = call_graph;
    as_call(self.get())->function = PyRef::borrow(function).release();
    as_call(self.get())->plan = plan.release();
    return self.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_call(self)->function);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(as_call(self)->function);
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(as_call(self)->function);
  delete as_call(self)->plan;
  Py_TYPE(self)->tp_free(self);
}

} // namespace

bool init_graph_call(PyObject* module) {
  GraphCallType.tp_basicsize = sizeof(GraphCallObject);
  GraphCallType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  GraphCallType.tp_vectorcall_offset = offsetof(GraphCallObject, call);
  GraphCallType.tp_call = PyVectorcall_Call;
  GraphCallType.tp_new = call_new;
  GraphCallType.tp_traverse = traverse;
  GraphCallType.tp_clear = clear;
  GraphCallType.tp_dealloc = dealloc;
  GraphCallType.tp_doc =
      "GraphCall(function, roots, steps, outputs): called with `roots` values, calls the function\n"
      "with parts of them. A step (base, kind, key) reads a part of a value or of an earlier "
      "step's\n"
      "part; kind is 'attr', 'item', 'closure' or 'cell'.";
  return python::add_type(module, &GraphCallType);
}

} // namespace torch::dynamo
