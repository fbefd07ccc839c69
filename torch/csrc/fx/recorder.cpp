// The recorder behind make_fx: which tensor is which node, and the node that each operator becomes.
//
// A traced tensor is known by the identity of its impl. The table holds the tensor itself, so an
// impl cannot be freed and its address taken by another while the trace lasts; clear() ends that.
// Beside the node an entry may hold a constant: the value of a tensor that the program made out of
// numbers and that is small enough to carry along, so that `.item()` of it is no question about
// data.
//
// What is rare is Python (torch/fx/experimental/proxy_tensor.py): facts about an operator, asked
// once for each; running an operator on constants; arguments that are neither numbers nor tracked
// tensors, which the tracer turns into nodes.
#include <torch/csrc/fx/fx.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/fake/FakeTensorImpl.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/types.h>

#include <unordered_map>
#include <vector>

namespace torch::fx {

namespace {

PyTypeObject RecorderType = python::type_object("torch._C._fx._Recorder");

using python::check_status;
using python::checked;
using python::python_error;

struct Tracked {
  at::Tensor tensor;
  PyRef node;     // a Node
  PyRef proxy;    // of the node, or null as long as nobody asked
  PyRef constant; // a tensor, or null
};

// What the Python side knows of an operator: bits, the name its nodes get, the target they call.
enum Fact : long { kDataDependent = 1, kSeeded = 2, kLifts = 4, kMutates = 8 };
struct Facts {
  long bits;
  PyObject* name;   // borrowed from the table of facts
  PyObject* target; // likewise
};

// Callables of torch/fx/experimental/proxy_tensor.py.
struct Hooks {
  PyRef facts;      // (func) -> (bits, name, target)
  PyRef on_numbers; // (func, args, kwargs) -> result, computed outside of every mode
  PyRef refuse; // (func, args): raises that data of a traced tensor was asked for, unless it may
  // (node, value, symbols): sets node.meta. symbols: whether a tensor has symbolic sizes, None for
  // other values.
  PyRef note;
  PyRef lifted;   // (tensor) -> a copy to keep as its constant, or None
  PyRef metadata; // the class TensorMetadata
};

struct State {
  std::unordered_map<const c10::TensorImpl*, Tracked> table;
  PyRef facts; // {OpOverload: (bits, name, target)}
  Hooks hooks;
  at::fake::FakeModePtr snapshots; // the mode of tensors that stand for real ones, or null
  int64_t constant_limit = 1;
  bool refuses_data = true;
};

struct RecorderObject {
  PyObject_HEAD PyObject* tracer;
  State* state;
};
RecorderObject* as_recorder(PyObject* o) { return reinterpret_cast<RecorderObject*>(o); }

struct Names {
  PyObject* create_node;
  PyObject* create_arg;
  PyObject* proxy;
  PyObject* node;
  PyObject* meta;
  PyObject* val;
  PyObject* tensor_meta;
  PyObject* getitem; // operator.getitem
} names;

Tracked* find(State& state, PyObject* tensor) {
  const auto it = state.table.find(python::tensor_of(tensor).unsafeGetTensorImpl());
  return it == state.table.end() ? nullptr : &it->second;
}

// ---- arguments
bool is_plain_value(PyObject* o) {
  return o == Py_None || PyLong_CheckExact(o) || PyBool_Check(o) || PyFloat_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyComplex_CheckExact(o) || python::is_dtype(o) ||
         python::is_device(o) || python::is_layout(o) || python::is_memory_format(o);
}

// Values as the arguments of a node.
class AsArgument final : public LeafMap {
 public:
  explicit AsArgument(RecorderObject* self) : self_(self) {}
  PyObject* map(PyObject* leaf) override {
    if (is_plain_value(leaf)) return Py_NewRef(leaf);
    if (python::is_tensor(leaf)) {
      if (Tracked* known = find(*self_->state, leaf)) return Py_NewRef(known->node.get());
    }
    return checked(PyObject_CallMethodOneArg(self_->tracer, names.create_arg, leaf)).release();
  }

 private:
  RecorderObject* self_;
};

// Tracked tensors replaced by their constants.
class AsConstant final : public LeafMap {
 public:
  explicit AsConstant(State& state) : state_(state) {}
  PyObject* map(PyObject* leaf) override {
    if (python::is_tensor(leaf)) {
      const Tracked* known = find(state_, leaf);
      if (known && known->constant) return Py_NewRef(known->constant.get());
    }
    return Py_NewRef(leaf);
  }

 private:
  State& state_;
};

template <class F> void for_each_tensor(PyObject* value, F&& visit) {
  if (python::is_tensor(value)) {
    visit(value);
  } else if (PyTuple_Check(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      for_each_tensor(PyTuple_GET_ITEM(value, i), visit);
  } else if (PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i)
      for_each_tensor(PyList_GET_ITEM(value, i), visit);
  } else if (PyDict_Check(value)) {
    PyObject *key, *item;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &key, &item)) for_each_tensor(item, visit);
  }
}

// How much of a call is known as numbers.
struct Knowledge {
  bool any = false;
  bool all = true;
};
Knowledge knowledge(State& state, PyObject* args, PyObject* kwargs) {
  Knowledge out;
  const auto look = [&](PyObject* tensor) {
    const Tracked* known = find(state, tensor);
    if (!known) return;
    out.any = out.any || known->constant;
    out.all = out.all && known->constant;
  };
  for_each_tensor(args, look);
  for_each_tensor(kwargs, look);
  return out;
}

// ---- what is noted on nodes
// Whether a tensor can be noted here; others are noted in Python.
bool is_simple(State& state, const at::Tensor& t) {
  if (t.layout() != at::Layout::Strided || t.unsafeGetTensorImpl()->has_symbolic_sizes())
    return false;
  const c10::DispatchKeySet odd{c10::DispatchKey::Python,        c10::DispatchKey::QuantizedCPU,
                                c10::DispatchKey::QuantizedCUDA, c10::DispatchKey::Functionalize,
                                c10::DispatchKey::Conjugate,     c10::DispatchKey::Negative};
  return state.snapshots && state.hooks.metadata && !t.key_set().has_any(odd) &&
         !t.device().is_meta();
}

// A tensor of the same geometry and device without data, unmoved by later changes.
PyRef snapshot(State& state, const at::Tensor& t) {
  if (at::fake::is_fake(t)) {
    at::Tensor copy(t.unsafeGetTensorImpl()->shallow_copy());
    return checked(python::wrap(std::move(copy)));
  }
  const at::Tensor meta = at::detail::empty_strided(t.sizes(), t.strides(), t.scalar_type(),
                                                    at::Device(at::DeviceType::Meta));
  return checked(python::wrap(at::fake::make_fake(meta, t.device(), state.snapshots)));
}

PyRef metadata(State& state, const at::Tensor& t) {
  const at::TensorImpl& impl = *t.unsafeGetTensorImpl();
  using Format = c10::MemoryFormat;
  PyRef format = PyRef::borrow(Py_None);
  for (const Format f : {Format::Contiguous, Format::ChannelsLast, Format::ChannelsLast3d}) {
    if (!impl.is_contiguous(f)) continue;
    format = checked(python::wrap(f));
    break;
  }
  PyRef shape = checked(python::make_size(t.sizes())),
        dtype = checked(python::wrap(t.scalar_type()));
  PyRef stride = checked(python::make_int_tuple(t.strides())), qparams = checked(PyDict_New());
  PyObject* parts[] = {shape.get(),  dtype.get(),  t.requires_grad() ? Py_True : Py_False,
                       stride.get(), format.get(), Py_False,
                       qparams.get()};
  return checked(PyObject_Vectorcall(state.hooks.metadata.get(), parts, 7, nullptr));
}

void note_tensor(RecorderObject* self, PyObject* node, const at::Tensor& t) {
  PyRef meta = checked(PyObject_GetAttr(node, names.meta));
  PyRef value = snapshot(*self->state, t), data = metadata(*self->state, t);
  check_status(PyObject_SetItem(meta.get(), names.val, value.get()));
  check_status(PyObject_SetItem(meta.get(), names.tensor_meta, data.get()));
}

// ---- tracking
void note(RecorderObject* self, PyObject* node, PyObject* value, PyObject* symbols) {
  PyObject* parts[] = {node, value, symbols};
  checked(PyObject_Vectorcall(self->state->hooks.note.get(), parts, 3, nullptr));
}

// Py_None stands for no constant.
void track_tensor(RecorderObject* self, PyObject* tensor, PyObject* node, PyObject* constant) {
  const at::Tensor& value = python::tensor_of(tensor);
  if (is_simple(*self->state, value)) {
    note_tensor(self, node, value);
  } else {
    const bool symbols = value.unsafeGetTensorImpl()->has_symbolic_sizes();
    note(self, node, tensor, symbols ? Py_True : Py_False);
  }
  Tracked& entry = self->state->table[value.unsafeGetTensorImpl()];
  entry.tensor = value;
  // Replaced values are freed when the entry is whole.
  PyRef old_node = std::exchange(entry.node, PyRef::borrow(node));
  PyRef old_proxy = std::exchange(entry.proxy, PyRef());
  PyRef old =
      std::exchange(entry.constant, constant == Py_None ? PyRef() : PyRef::borrow(constant));
}

PyRef create_node(RecorderObject* self, PyObject* target, PyObject* args, PyObject* kwargs,
                  PyObject* name) {
  PyObject* parts[] = {self->tracer, words.call_function, target, args, kwargs, name};
  PyRef node = checked(PyObject_VectorcallMethod(names.create_node, parts, name ? 6 : 5, nullptr));
  if (!is_node(node.get()))
    python::raise_type_error(std::string("create_node() of a tracer returned a ") +
                             python::type_name(node.get()) + ", not a Node");
  return node;
}

PyRef item_node(RecorderObject* self, PyObject* node, Py_ssize_t index) {
  PyRef number = checked(PyLong_FromSsize_t(index));
  PyRef args = checked(PyTuple_Pack(2, node, number.get()));
  PyRef kwargs = checked(PyDict_New());
  return create_node(self, names.getitem, args.get(), kwargs.get(), nullptr);
}

PyObject* item_of(PyObject* sequence, Py_ssize_t i) {
  if (!sequence || sequence == Py_None) return Py_None;
  if (PyTuple_Check(sequence) && i < PyTuple_GET_SIZE(sequence))
    return PyTuple_GET_ITEM(sequence, i);
  if (PyList_Check(sequence) && i < PyList_GET_SIZE(sequence)) return PyList_GET_ITEM(sequence, i);
  return Py_None;
}

// The tensors of a result as the node, or as items of it.
void track_result(RecorderObject* self, PyObject* value, PyObject* node, PyObject* constant) {
  if (python::is_tensor(value)) {
    track_tensor(self, value, node, constant);
    return;
  }
  if (!PyTuple_Check(value) && !PyList_Check(value)) {
    if (value != Py_None) note(self, node, value, Py_None);
    return;
  }
  note(self, node, value, Py_None);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(value);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = item_of(value, i);
    if (item == Py_None) continue;
    PyRef part = item_node(self, node, i);
    track_result(self, item, part.get(), item_of(constant, i));
  }
}

// ---- one operator
Facts facts_of(State& state, PyObject* func) {
  PyObject* known = PyDict_GetItemWithError(state.facts.get(), func);
  if (!known) {
    if (PyErr_Occurred()) throw python_error();
    PyRef made = checked(PyObject_CallOneArg(state.hooks.facts.get(), func));
    if (!PyTuple_Check(made.get()) || PyTuple_GET_SIZE(made.get()) != 3)
      python::raise_type_error("facts about an operator are (bits, name, target)");
    check_status(PyDict_SetItem(state.facts.get(), func, made.get()));
    known = made.get(); // the table owns it
  }
  const long bits = PyLong_AsLong(PyTuple_GET_ITEM(known, 0));
  if (bits == -1 && PyErr_Occurred()) throw python_error();
  return {bits, PyTuple_GET_ITEM(known, 1), PyTuple_GET_ITEM(known, 2)};
}

PyRef run_on_constants(State& state, PyObject* func, PyObject* args, PyObject* kwargs) {
  AsConstant constants(state);
  PyRef a(map_aggregate(args, constants)), k(map_aggregate(kwargs, constants));
  PyObject* parts[] = {func, a.get(), k.get()};
  return checked(PyObject_Vectorcall(state.hooks.on_numbers.get(), parts, 3, nullptr));
}

bool is_small(State& state, PyObject* value) {
  bool small = true;
  for_each_tensor(value, [&](PyObject* tensor) {
    const at::Tensor& t = python::tensor_of(tensor);
    small = small && !t.unsafeGetTensorImpl()->has_symbolic_sizes() &&
            t.numel() <= state.constant_limit;
  });
  return small;
}

// The result as numbers, or None.
PyRef constant_of(State& state, const Facts& facts, const Knowledge& known, PyObject* func,
                  PyObject* args, PyObject* kwargs, PyObject* out) {
  if (facts.bits & kLifts && PyTuple_GET_SIZE(args) > 0) {
    PyRef copy = checked(PyObject_CallOneArg(state.hooks.lifted.get(), PyTuple_GET_ITEM(args, 0)));
    return is_small(state, out) ? std::move(copy) : PyRef::borrow(Py_None);
  }
  if (facts.bits & kSeeded || !known.any || !known.all || !is_small(state, out))
    return PyRef::borrow(Py_None);
  return run_on_constants(state, func, args, kwargs);
}

PyObject* call_operator(RecorderObject* self, PyObject* func, PyObject* args, PyObject* kwargs) {
  State& state = *self->state;
  const Facts facts = facts_of(state, func);
  const Knowledge known = knowledge(state, args, kwargs);
  if (facts.bits & kDataDependent) {
    if (known.all) return run_on_constants(state, func, args, kwargs).release();
    if (state.refuses_data) {
      PyObject* parts[] = {func, args};
      checked(PyObject_Vectorcall(state.hooks.refuse.get(), parts, 2, nullptr));
    }
  }
  // The operator runs first: one that fails leaves no node.
  PyRef out = checked(PyObject_Call(func, args, kwargs));
  if (out.get() == Py_NotImplemented) return out.release();
  AsArgument arguments(self);
  PyRef a(map_aggregate(args, arguments)), k(map_aggregate(kwargs, arguments));
  PyRef node = create_node(self, facts.target, a.get(), k.get(), facts.name);
  // After the arguments: a constant that is lifted has its place in the module by then.
  PyRef constant = constant_of(state, facts, known, func, args, kwargs, out.get());
  if (facts.bits & kMutates && constant.get() == Py_None) {
    // Which argument was written is not asked: what a write may have changed is no constant.
    const auto forget = [&](PyObject* tensor) {
      if (Tracked* t = find(state, tensor)) t->constant = PyRef();
    };
    for_each_tensor(args, forget);
    for_each_tensor(kwargs, forget);
  }
  track_result(self, out.get(), node.get(), constant.get());
  return out.release();
}

// ---- methods
PyObject* py_call(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  return python::guarded([&]() -> PyObject* {
    if (n != 3 || !PyTuple_Check(args[1]) || !PyDict_Check(args[2]))
      python::raise_type_error("_Recorder.call(func, args, kwargs) takes a tuple and a dict");
    return call_operator(as_recorder(o), args[0], args[1], args[2]);
  });
}

void require_tensor(PyObject* o) {
  if (!python::is_tensor(o))
    python::raise_type_error(std::string("expected a Tensor, got ") + python::type_name(o));
}

// A Node, or the node of a Proxy.
PyRef node_of(PyObject* o) {
  if (is_node(o)) return PyRef::borrow(o);
  PyRef node = checked(PyObject_GetAttr(o, names.node));
  if (!is_node(node.get()))
    python::raise_type_error(std::string("expected a Proxy or a Node, got ") +
                             python::type_name(o));
  return node;
}

// get(tensor) -> (proxy, constant), or None.
PyObject* py_get(PyObject* o, PyObject* tensor) {
  return python::guarded([&]() -> PyObject* {
    require_tensor(tensor);
    Tracked* known = find(*as_recorder(o)->state, tensor);
    if (!known) return python::new_none();
    if (!known->proxy) {
      PyRef made = checked(
          PyObject_CallMethodOneArg(as_recorder(o)->tracer, names.proxy, known->node.get()));
      known = find(*as_recorder(o)->state, tensor);
      if (!known) return python::new_none();
      known->proxy = std::move(made);
    }
    PyObject* constant = known->constant ? known->constant.get() : Py_None;
    return checked(PyTuple_Pack(2, known->proxy.get(), constant)).release();
  });
}

PyObject* py_node(PyObject* o, PyObject* tensor) {
  return python::guarded([&]() -> PyObject* {
    require_tensor(tensor);
    const Tracked* known = find(*as_recorder(o)->state, tensor);
    return known ? Py_NewRef(known->node.get()) : python::new_none();
  });
}

// set(tensor, proxy_or_node, constant=None)
PyObject* py_set(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  return python::guarded([&]() -> PyObject* {
    if (n < 2 || n > 3) python::raise_type_error("_Recorder.set(tensor, proxy, constant=None)");
    require_tensor(args[0]);
    PyRef node = node_of(args[1]);
    const at::Tensor& value = python::tensor_of(args[0]);
    Tracked entry{value, node, is_node(args[1]) ? PyRef() : PyRef::borrow(args[1]),
                  n == 3 && args[2] != Py_None ? PyRef::borrow(args[2]) : PyRef()};
    std::swap(as_recorder(o)->state->table[value.unsafeGetTensorImpl()], entry);
    return python::new_none();
  });
}

PyObject* py_forget(PyObject* o, PyObject* tensor) {
  return python::guarded([&]() -> PyObject* {
    require_tensor(tensor);
    auto& table = as_recorder(o)->state->table;
    auto dropped = table.extract(python::tensor_of(tensor).unsafeGetTensorImpl());
    return python::new_bool(!dropped.empty());
  });
}

// argument(value): the value with nodes in place of tracked tensors, as a node takes it.
PyObject* py_argument(PyObject* o, PyObject* value) {
  return python::guarded([&]() -> PyObject* {
    AsArgument arguments(as_recorder(o));
    return map_aggregate(value, arguments);
  });
}

void drop_all(State& state) {
  std::unordered_map<const c10::TensorImpl*, Tracked> dropped;
  std::swap(dropped,
            state.table); // freeing tensors may run Python, which must find the table whole
}
PyObject* py_clear(PyObject* o, PyObject*) {
  drop_all(*as_recorder(o)->state);
  Py_RETURN_NONE;
}

// note_natively(like, metadata): simple tensors are noted without Python: values as fake tensors of
// the mode of `like`, geometry as `metadata`, a class with the fields of TensorMetadata.
PyObject* py_note_natively(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  return python::guarded([&]() -> PyObject* {
    if (n != 2) python::raise_type_error("_Recorder.note_natively(like, metadata)");
    require_tensor(args[0]);
    State& state = *as_recorder(o)->state;
    state.snapshots = at::fake::mode_of(python::tensor_of(args[0]));
    if (!state.snapshots) python::raise_type_error("note_natively(): expected a fake tensor");
    state.hooks.metadata = PyRef::borrow(args[1]);
    return python::new_none();
  });
}

PyObject* py_tensors(PyObject* o, PyObject*) {
  return python::guarded([&]() -> PyObject* {
    PyRef out = checked(PyList_New(0));
    std::vector<at::Tensor> all;
    for (const auto& [impl, entry] : as_recorder(o)->state->table) all.push_back(entry.tensor);
    for (const at::Tensor& t : all) {
      PyRef object = checked(python::wrap(t));
      check_status(PyList_Append(out.get(), object.get()));
    }
    return out.release();
  });
}

Py_ssize_t length(PyObject* o) {
  return static_cast<Py_ssize_t>(as_recorder(o)->state->table.size());
}

// ---- life
PyObject* recorder_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  const char* words_[] = {"tracer", "facts",          "on_numbers",   "refuse", "note",
                          "lifted", "constant_limit", "refuses_data", nullptr};
  PyObject *tracer, *facts, *on_numbers, *refuse, *noted, *lifted;
  long long limit = 1;
  int refuses = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO|Lp:_Recorder", const_cast<char**>(words_),
                                   &tracer, &facts, &on_numbers, &refuse, &noted, &lifted, &limit,
                                   &refuses))
    return nullptr;
  PyRef self(type->tp_alloc(type, 0));
  PyRef known(PyDict_New());
  if (!self || !known) return nullptr;
  RecorderObject* r = as_recorder(self.get());
  r->state = new State();
  r->tracer = Py_NewRef(tracer);
  r->state->facts = std::move(known);
  r->state->hooks = {PyRef::borrow(facts), PyRef::borrow(on_numbers), PyRef::borrow(refuse),
                     PyRef::borrow(noted), PyRef::borrow(lifted),     PyRef()};
  r->state->constant_limit = limit;
  r->state->refuses_data = refuses != 0;
  return self.release();
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  RecorderObject* self = as_recorder(o);
  Py_VISIT(self->tracer);
  if (!self->state) return 0;
  Py_VISIT(self->state->facts.get());
  const Hooks& hooks = self->state->hooks;
  for (const PyRef* hook : {&hooks.facts, &hooks.on_numbers, &hooks.refuse, &hooks.note,
                            &hooks.lifted, &hooks.metadata})
    Py_VISIT(hook->get());
  for (const auto& [impl, entry] : self->state->table) {
    Py_VISIT(entry.node.get());
    Py_VISIT(entry.proxy.get());
    Py_VISIT(entry.constant.get());
  }
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(as_recorder(o)->tracer);
  if (as_recorder(o)->state) drop_all(*as_recorder(o)->state);
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  clear(o);
  delete as_recorder(o)->state;
  Py_TYPE(o)->tp_free(o);
}

PyObject* get_refuses(PyObject* o, void*) {
  return python::new_bool(as_recorder(o)->state->refuses_data);
}
int set_refuses(PyObject* o, PyObject* value, void*) {
  const int truth = value ? PyObject_IsTrue(value) : -1;
  if (truth < 0) return -1;
  as_recorder(o)->state->refuses_data = truth != 0;
  return 0;
}

PyMethodDef methods[] = {
    {"call", python::as_method(py_call), METH_FASTCALL,
     "call($self, func, args, kwargs)\n--\n\nRuns an operator and records it; returns its result."},
    {"get", py_get, METH_O, "get($self, tensor)\n--\n\n(proxy, constant) of a tensor, or None."},
    {"node", py_node, METH_O, "node($self, tensor)\n--\n\nThe node of a tensor, or None."},
    {"set", python::as_method(py_set), METH_FASTCALL,
     "set($self, tensor, proxy, constant=None)\n--\n\nMakes a tensor known as a proxy."},
    {"forget", py_forget, METH_O, "forget($self, tensor)\n--\n\nWhether the tensor was known."},
    {"argument", py_argument, METH_O,
     "argument($self, value)\n--\n\nThe value with nodes in place of known tensors."},
    {"note_natively", python::as_method(py_note_natively), METH_FASTCALL,
     "note_natively($self, like, metadata)\n--\n\nNotes simple tensors without Python."},
    {"tensors", py_tensors, METH_NOARGS, "tensors($self)\n--\n\nAll known tensors."},
    {"clear", py_clear, METH_NOARGS, "clear($self)\n--\n\nForgets all tensors."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {{"refuses_data", get_refuses, set_refuses,
                             "Whether asking a traced tensor for its value raises.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMappingMethods mapping = {length, nullptr, nullptr};
} // namespace

bool init_recorder(PyObject* module) {
  const auto intern = [](PyObject*& slot, const char* text) {
    return (slot = PyUnicode_InternFromString(text)) != nullptr;
  };
  PyRef operators(PyImport_ImportModule("operator"));
  if (!operators || !(names.getitem = PyObject_GetAttrString(operators.get(), "getitem")) ||
      !intern(names.create_node, "create_node") || !intern(names.create_arg, "create_arg") ||
      !intern(names.proxy, "proxy") || !intern(names.node, "node") || !intern(names.meta, "meta") ||
      !intern(names.val, "val") || !intern(names.tensor_meta, "tensor_meta"))
    return false;
  RecorderType.tp_basicsize = sizeof(RecorderObject);
  RecorderType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  RecorderType.tp_new = recorder_new;
  RecorderType.tp_dealloc = dealloc;
  RecorderType.tp_traverse = traverse;
  RecorderType.tp_clear = clear;
  RecorderType.tp_methods = methods;
  RecorderType.tp_getset = attributes;
  RecorderType.tp_as_mapping = &mapping;
  return python::add_type(module, &RecorderType);
}

} // namespace torch::fx
