// The guard tree: managers, how they are built from Python, and the walk that checks them.
#include <torch/csrc/dynamo/guard_record.h>
#include <torch/csrc/dynamo/value_sets.h>

#include <structmember.h>

namespace torch::dynamo {

PyTypeObject GuardManagerType = python::type_object("torch._C._dynamo.guards.GuardManager");
PyTypeObject RootGuardManagerType = python::type_object("torch._C._dynamo.guards.RootGuardManager");

namespace {

using python::check_status;
using python::checked;
using python::guarded;
using python::raise;

PyTypeObject DictGuardManagerType = python::type_object("torch._C._dynamo.guards.DictGuardManager");
PyTypeObject DictSubclassGuardManagerType =
    python::type_object("torch._C._dynamo.guards.DictSubclassGuardManager");
PyTypeObject GuardDebugInfoType = python::type_object("torch._C._dynamo.guards.GuardDebugInfo");

bool is_dict_manager(const PyObject* o) {
  return PyObject_TypeCheck(const_cast<PyObject*>(o), &DictGuardManagerType);
}

// ---- checking

bool check(ManagerObject* manager, PyObject* value, const FrameView& view);

bool check_pairs(ManagerState& state, PyObject* dict, const FrameView& view) {
  if (Py_TYPE(dict) != state.dict_type || PyDict_GET_SIZE(dict) != state.dict_length) return false;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0, place = 0;
  size_t next = 0;
  for (; next < state.pairs.size() && PyDict_Next(dict, &position, &key, &value); ++place) {
    const KeyValue& pair = state.pairs[next];
    if (pair.place != place) continue;
    const PyRef key_held = PyRef::borrow(key), value_held = PyRef::borrow(value);
    if (pair.key && !check(as_manager(pair.key.get()), key, view)) return false;
    if (pair.value && !check(as_manager(pair.value.get()), value, view)) return false;
    ++next;
  }
  return next == state.pairs.size();
}

// An edit of any tree makes all look again.
uint64_t tree_edits = 1;

bool check_leaves(ManagerState& state, PyObject* value) {
  for (const PyRef& leaf : state.leaves) {
    if (C10_UNLIKELY(!check_leaf(as_leaf(leaf.get()), value))) {
      ++state.failures;
      return false;
    }
  }
  return true;
}

// Parts of a value that changes too often for a record get their own.
void record_parts(ManagerState& state) {
  state.recording = false;
  state.records.reset();
  for (const PyRef& held : state.accessors) as_accessor(held.get())->child->state->recording = true;
  for (const KeyValue& pair : state.pairs) {
    if (pair.key) as_manager(pair.key.get())->state->recording = true;
    if (pair.value) as_manager(pair.value.get())->state->recording = true;
  }
}

bool check_parts(ManagerState& state, PyObject* value, const FrameView& view) {
  for (size_t i = 0; i < state.accessors.size(); ++i) {
    AccessorObject* accessor = as_accessor(state.accessors[i].get());
    PyRef owned;
    PyObject* part = fetch(accessor, value, view, owned);
    if (C10_LIKELY(part != nullptr) && check(accessor->child, part, view)) continue;
    if (!part) PyErr_Clear();
    ++state.failures;
    // What failed is asked earlier the next time.
    if (view.reorder && i > 0) std::swap(state.accessors[i], state.accessors[i - 1]);
    return false;
  }
  return state.dict_type == nullptr || check_pairs(state, value, view);
}

bool check_recorded(ManagerObject* manager, PyObject* value, const FrameView& view) {
  ManagerState& state = *manager->state;
  if (!state.records) state.records = std::make_shared<RecordTable>();
  const std::shared_ptr<RecordTable> records = state.records;
  const Record::Outcome outcome = records->check(value, tree_edits, view);
  if (C10_LIKELY(outcome == Record::Outcome::Holds)) return true;
  if (outcome == Record::Outcome::Fails) {
    ++state.failures;
    return false;
  }
  if (!check_leaves(state, value) || !check_parts(state, value, view)) return false;
  if (!records->note(manager, value)) record_parts(state);
  return true;
}

bool check(ManagerObject* manager, PyObject* value, const FrameView& view) {
  ManagerState& state = *manager->state;
  const bool has_parts = !state.accessors.empty() || state.dict_type;
  if (state.recording && has_parts && view.reorder) return check_recorded(manager, value, view);
  return check_leaves(state, value) && (!has_parts || check_parts(state, value, view));
}

// The frame as a mapping, for conditions written in Python: the locals that have managers.
PyRef frame_mapping(const ManagerState& state, const FrameView& view) {
  PyRef out(PyDict_New());
  for (const PyRef& held : state.accessors) {
    const AccessorObject* accessor = as_accessor(held.get());
    PyRef owned;
    if (accessor->kind != AccessorKind::FrameLocal || !out) continue;
    PyObject* value = fetch(accessor, Py_None, view, owned);
    if (!value || PyDict_SetItem(out.get(), accessor->key, value) < 0) return PyRef();
  }
  return out;
}

// Conditions on the frame as a whole; programs over sizes do not look at it.
bool check_epilogue(ManagerState& state, PyObject* value, const FrameView& view) {
  PyRef mapping;
  for (const PyRef& held : state.epilogue) {
    LeafObject* leaf = as_leaf(held.get());
    if (leaf->kind == LeafKind::Lambda && view.values && !mapping) {
      mapping = frame_mapping(state, view);
      if (!mapping) {
        PyErr_Clear();
        return false;
      }
    }
    if (!check_leaf(leaf, mapping ? mapping.get() : value)) return false;
  }
  return true;
}

void reset_state(ManagerState& state) {
  for (const PyRef& leaf : state.stateful) reset_leaf(as_leaf(leaf.get()));
}

// ---- reports

// What a verbose check finds: the texts of the first failure and where it was.
struct Report {
  PyRef parts;
  std::string source;
  int executed = 0;
};

PyRef text_list(const std::string& text) { return checked(Py_BuildValue("[s]", text.c_str())); }

// The Python error that is set, in words; clears it.
std::string error_text() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const PyRef t(type), v(value), tb(trace);
  if (!v) return {};
  return std::string(reinterpret_cast<PyTypeObject*>(t.get())->tp_name) + ": " +
         python::text_of(v.get());
}

bool explain(ManagerObject* manager, PyObject* value, const FrameView& view, Report& report);

bool explain_pairs(ManagerState& state, PyObject* dict, const FrameView& view, Report& report) {
  if (Py_TYPE(dict) != state.dict_type || PyDict_GET_SIZE(dict) != state.dict_length) {
    report.parts = text_list("len(" + state.source + ") == " + std::to_string(state.dict_length));
    report.source = state.source;
    return false;
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0, place = 0;
  size_t next = 0;
  for (; next < state.pairs.size() && PyDict_Next(dict, &position, &key, &value); ++place) {
    const KeyValue& pair = state.pairs[next];
    if (pair.place != place) continue;
    const PyRef key_held = PyRef::borrow(key), value_held = PyRef::borrow(value);
    if (pair.key && !explain(as_manager(pair.key.get()), key, view, report)) return false;
    if (pair.value && !explain(as_manager(pair.value.get()), value, view, report)) return false;
    ++next;
  }
  return true;
}

bool explain_leaf(LeafObject* leaf, PyObject* value, const std::string& source, Report& report) {
  ++report.executed;
  if (check_leaf(leaf, value)) return true;
  report.parts = leaf_failure(leaf, value);
  report.source = source;
  return false;
}

bool explain(ManagerObject* manager, PyObject* value, const FrameView& view, Report& report) {
  ManagerState& state = *manager->state;
  for (const PyRef& leaf : state.leaves)
    if (!explain_leaf(as_leaf(leaf.get()), value, state.source, report)) return false;
  for (const PyRef& held : std::vector<PyRef>(state.accessors)) {
    PyRef owned;
    AccessorObject* accessor = as_accessor(held.get());
    PyObject* part = fetch(accessor, value, view, owned);
    if (!part) {
      std::string reason = PyErr_Occurred() ? error_text() : std::string("not there");
      report.parts = text_list(accessor->child->state->source + ": " + reason);
      report.source = accessor->child->state->source;
      return false;
    }
    if (!explain(accessor->child, part, view, report)) return false;
  }
  return state.dict_type == nullptr || explain_pairs(state, value, view, report);
}

// ---- the report as an object

struct DebugInfoObject {
  PyObject_HEAD char result;
  PyObject* parts;
  int executed;
  PyObject* source;
};

PyObject* info_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int result = 0, executed = 0;
  PyObject *parts = nullptr, *source = Py_None;
  if (!PyArg_ParseTuple(args, "pOi|O:GuardDebugInfo", &result, &parts, &executed, &source))
    return nullptr;
  PyRef list(PyUnicode_Check(parts) ? Py_BuildValue("[O]", parts) : PySequence_List(parts));
  PyObject* self = list ? type->tp_alloc(type, 0) : nullptr;
  if (!self) return nullptr;
  auto* info = reinterpret_cast<DebugInfoObject*>(self);
  info->result = result != 0;
  info->executed = executed;
  info->parts = list.release();
  info->source = PyRef::borrow(source).release();
  return self;
}
void info_dealloc(PyObject* self) {
  Py_XDECREF(reinterpret_cast<DebugInfoObject*>(self)->parts);
  Py_XDECREF(reinterpret_cast<DebugInfoObject*>(self)->source);
  Py_TYPE(self)->tp_free(self);
}
PyObject* info_repr(PyObject* self) {
  auto* info = reinterpret_cast<DebugInfoObject*>(self);
  return PyUnicode_FromFormat(
      "GuardDebugInfo(\nresult=%d,\nverbose_code_parts=%R,\nnum_guards_executed=%d)\n",
      info->result ? 1 : 0, info->parts, info->executed);
}
PyMemberDef info_members[] = {
    {"result", T_BOOL, offsetof(DebugInfoObject, result), READONLY, nullptr},
    {"verbose_code_parts", T_OBJECT, offsetof(DebugInfoObject, parts), READONLY, nullptr},
    {"num_guards_executed", T_INT, offsetof(DebugInfoObject, executed), READONLY, nullptr},
    {"source", T_OBJECT, offsetof(DebugInfoObject, source), READONLY,
     "The expression whose value failed, or None."},
    {nullptr, 0, 0, 0, nullptr}};

// ---- building

PyObject* manager_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_manager(self)->state = new ManagerState();
  as_manager(self)->root = as_manager(self);
  return self;
}

PyRef new_child(ManagerObject* parent, PyObject* source, PyObject* example, PyObject* kind) {
  // The value of torch._dynamo.guards.GuardManagerType.
  long which = 1;
  if (kind && kind != Py_None) {
    PyRef number =
        PyLong_Check(kind) ? PyRef::borrow(kind) : checked(PyObject_GetAttrString(kind, "value"));
    which = PyLong_AsLong(number.get());
    if (which == -1 && PyErr_Occurred()) throw python::python_error();
  }
  PyTypeObject* type = which == 2   ? &DictGuardManagerType
                       : which == 3 ? &DictSubclassGuardManagerType
                                    : &GuardManagerType;
  PyRef child = checked(manager_new(type, nullptr, nullptr));
  ManagerObject* made = as_manager(child.get());
  made->root = parent->root;
  made->state->recording = parent->root == parent;
  if (source && source != Py_None) made->state->source = python::text_of(source);
  if (which != 1) {
    if (!example || !PyDict_Check(example))
      python::raise_type_error("a manager of a dictionary needs a dict as example");
    made->state->dict_type = Py_TYPE(example);
    made->state->dict_length = PyDict_GET_SIZE(example);
  }
  return child;
}

PyObject* child_of(PyObject* self, AccessorKind kind, PyObject* key, PyObject* source,
                   PyObject* example, PyObject* manager_kind) {
  return guarded([&]() -> PyObject* {
    if (is_dict_manager(self))
      raise(PyExc_RuntimeError, "a DictGuardManager has managers of keys and values only");
    if (kind == AccessorKind::FrameLocal && !(PyTuple_Check(key) && PyTuple_GET_SIZE(key) == 2 &&
                                              PyLong_Check(PyTuple_GET_ITEM(key, 1)))) {
      python::raise_type_error("frame_local_manager: the key is (name, position)");
    }
    ManagerObject* manager = as_manager(self);
    for (const PyRef& held : manager->state->accessors) {
      AccessorObject* accessor = as_accessor(held.get());
      if (same_access(accessor, kind, key))
        return PyRef::borrow(reinterpret_cast<PyObject*>(accessor->child)).release();
    }
    ++tree_edits;
    PyRef child = new_child(manager, source, example, manager_kind);
    manager->state->accessors.push_back(new_accessor(kind, key, as_manager(child.get())));
    return child.release();
  });
}

// name_manager(key, source, example_value, guard_manager_enum)
template <AccessorKind kind>
PyObject* keyed_child(PyObject* self, PyObject* args, PyObject* kwargs) {
  // The key's name differs between methods; by position or by its own name it is the first.
  PyObject *key = nullptr, *source = nullptr, *example = Py_None, *which = nullptr;
  PyRef rest;
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
    rest = PyRef(PyDict_Copy(kwargs));
    if (!rest) return nullptr;
    for (const char* name : {"attr", "key", "index", "python_lambda", "global_name", "f_globals"}) {
      PyObject* found = PyDict_GetItemString(rest.get(), name);
      if (!found) continue;
      const PyRef held = PyRef::borrow(found), one(PyTuple_Pack(1, found));
      if (!one || PyDict_DelItemString(rest.get(), name) < 0) return nullptr;
      const PyRef all(PySequence_Concat(one.get(), args));
      if (!all) return nullptr;
      return keyed_child<kind>(self, all.get(), rest.get());
    }
  }
  static const char* names[] = {"", "source", "example_value", "guard_manager_enum", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO", const_cast<char**>(names), &key, &source,
                                   &example, &which)) {
    return nullptr;
  }
  return child_of(self, kind, key, source, example, which);
}
template <AccessorKind kind>
PyObject* plain_child(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject *source = nullptr, *example = Py_None, *which = nullptr;
  static const char* names[] = {"source", "example_value", "guard_manager_enum", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO", const_cast<char**>(names), &source,
                                   &example, &which)) {
    return nullptr;
  }
  return child_of(self, kind, nullptr, source, example, which);
}

void note_state(ManagerObject* manager, const PyRef& leaf) {
  ++tree_edits;
  if (has_state(as_leaf(leaf.get()))) manager->root->state->stateful.push_back(leaf);
}

template <LeafKind kind> PyObject* add_leaf(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    constexpr bool allowed = kind == LeafKind::Type || kind == LeafKind::DictContains ||
                             kind == LeafKind::DictVersion || kind == LeafKind::NotNone;
    if (is_dict_manager(self) && !allowed)
      raise(PyExc_RuntimeError, "a DictGuardManager has no conditions of its own");
    PyRef leaf = new_leaf(kind, args);
    note_state(as_manager(self), leaf);
    as_manager(self)->state->leaves.push_back(std::move(leaf));
    return python::new_none();
  });
}
template <LeafKind kind> PyObject* add_epilogue(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    as_manager(self)->state->epilogue.push_back(new_leaf(kind, args));
    return python::new_none();
  });
}

// get_key_manager(index, source, example_value, guard_manager_enum), and of values.
template <bool of_key> PyObject* pair_manager(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"index", "source", "example_value", "guard_manager_enum", nullptr};
  Py_ssize_t index = 0;
  PyObject *source = nullptr, *example = Py_None, *which = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|OOO", const_cast<char**>(names), &index,
                                   &source, &example, &which)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    auto& pairs = as_manager(self)->state->pairs;
    size_t at = 0;
    while (at < pairs.size() && pairs[at].place < index) ++at;
    if (at == pairs.size() || pairs[at].place != index)
      pairs.insert(pairs.begin() + static_cast<std::ptrdiff_t>(at), KeyValue{index, {}, {}});
    PyRef& slot = of_key ? pairs[at].key : pairs[at].value;
    if (!slot) slot = new_child(as_manager(self), source, example, which);
    return PyRef(slot).release();
  });
}
PyObject* get_pairs(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef out = checked(PyDict_New());
    for (const KeyValue& pair : as_manager(self)->state->pairs) {
      PyRef place = checked(PyLong_FromSsize_t(pair.place));
      PyRef both = checked(Py_BuildValue("(OO)", pair.key ? pair.key.get() : Py_None,
                                         pair.value ? pair.value.get() : Py_None));
      check_status(PyDict_SetItem(out.get(), place.get(), both.get()));
    }
    return out.release();
  });
}

// ---- looking at a tree

PyObject* list_of(const std::vector<PyRef>& items) {
  PyObject* out = PyList_New(static_cast<Py_ssize_t>(items.size()));
  for (size_t i = 0; out && i < items.size(); ++i)
    PyList_SET_ITEM(out, static_cast<Py_ssize_t>(i), PyRef(items[i]).release());
  return out;
}
PyObject* get_leaves(PyObject* self, PyObject*) { return list_of(as_manager(self)->state->leaves); }
PyObject* get_accessors(PyObject* self, PyObject*) {
  return list_of(as_manager(self)->state->accessors);
}
PyObject* get_epilogue(PyObject* self, PyObject*) {
  return list_of(as_manager(self)->state->epilogue);
}
PyObject* get_children(PyObject* self, PyObject*) {
  std::vector<PyRef> children;
  for (const PyRef& accessor : as_manager(self)->state->accessors)
    children.push_back(
        PyRef::borrow(reinterpret_cast<PyObject*>(as_accessor(accessor.get())->child)));
  return list_of(children);
}
PyObject* get_source(PyObject* self, PyObject*) {
  return PyUnicode_FromString(as_manager(self)->state->source.c_str());
}
PyObject* get_failures(PyObject* self, PyObject*) {
  return PyLong_FromLong(as_manager(self)->state->failures);
}

PyObject* py_check(PyObject* self, PyObject* value) {
  FrameView view;
  view.mapping = value;
  return python::new_bool(check_root(as_manager(self), value, view));
}
PyObject* py_check_verbose(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    FrameView view;
    view.mapping = value;
    Report report;
    ManagerState& state = *as_manager(self)->state;
    reset_state(state);
    bool holds = explain(as_manager(self), value, view, report);
    for (const PyRef& leaf : state.epilogue)
      holds = holds && explain_leaf(as_leaf(leaf.get()), value, "", report);
    reset_state(state);
    if (!report.parts) report.parts = checked(PyList_New(0));
    return PyObject_CallFunction(reinterpret_cast<PyObject*>(&GuardDebugInfoType), "OOis",
                                 holds ? Py_True : Py_False, report.parts.get(), report.executed,
                                 report.source.c_str());
  });
}

// clone_manager(keep): the tree without the managers that `keep` refuses.
PyRef clone(ManagerObject* from, ManagerObject* root, PyObject* wanted) {
  PyRef asked = checked(PyObject_CallOneArg(wanted, reinterpret_cast<PyObject*>(from)));
  const int truth = PyObject_IsTrue(asked.get());
  check_status(truth);
  if (!truth) return PyRef();
  PyTypeObject* type = Py_TYPE(reinterpret_cast<PyObject*>(from));
  PyRef out = checked(manager_new(type, nullptr, nullptr));
  ManagerObject* to = as_manager(out.get());
  if (root) to->root = root;
  const ManagerState& state = *from->state;
  to->state->leaves = state.leaves;
  to->state->source = state.source;
  to->state->dict_type = state.dict_type;
  to->state->dict_length = state.dict_length;
  to->state->epilogue = state.epilogue;
  for (const PyRef& leaf : state.leaves) note_state(to, leaf);
  for (const PyRef& held : state.accessors) {
    const AccessorObject* accessor = as_accessor(held.get());
    PyRef child = clone(accessor->child, to->root, wanted);
    if (!child) continue;
    PyRef key = accessor->kind == AccessorKind::FrameLocal
                    ? checked(Py_BuildValue("(On)", accessor->key, accessor->index))
                    : PyRef::borrow(accessor->key);
    to->state->accessors.push_back(
        new_accessor(accessor->kind, key.get(), as_manager(child.get())));
  }
  for (const KeyValue& pair : state.pairs) {
    KeyValue made{pair.place, {}, {}};
    if (pair.key) made.key = clone(as_manager(pair.key.get()), to->root, wanted);
    if (pair.value) made.value = clone(as_manager(pair.value.get()), to->root, wanted);
    to->state->pairs.push_back(std::move(made));
  }
  return out;
}
PyObject* py_clone(PyObject* self, PyObject* wanted) {
  return guarded([&] {
    PyRef out = clone(as_manager(self), nullptr, wanted);
    return out ? out.release() : python::new_none();
  });
}

PyMethodDef manager_methods[] = {
    {"frame_local_manager", python::as_method(keyed_child<AccessorKind::FrameLocal>),
     METH_VARARGS | METH_KEYWORDS, "The manager of a local: key is (name, position)."},
    {"framelocals_manager", python::as_method(keyed_child<AccessorKind::FrameLocal>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"globals_dict_manager", python::as_method(keyed_child<AccessorKind::Globals>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"getattr_manager", python::as_method(keyed_child<AccessorKind::GetAttr>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"get_generic_dict_manager", python::as_method(plain_child<AccessorKind::GenericDict>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"getitem_manager", python::as_method(keyed_child<AccessorKind::GetItem>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"dict_getitem_manager", python::as_method(keyed_child<AccessorKind::DictItem>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"list_getitem_manager", python::as_method(keyed_child<AccessorKind::ListItem>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"tuple_getitem_manager", python::as_method(keyed_child<AccessorKind::TupleItem>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"type_manager", python::as_method(plain_child<AccessorKind::Type>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"lambda_manager", python::as_method(keyed_child<AccessorKind::Lambda>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"tuple_iterator_getitem_manager",
     python::as_method(keyed_child<AccessorKind::TupleIteratorItem>), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"weakref_call_manager", python::as_method(plain_child<AccessorKind::WeakrefCall>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"global_weakref_manager", python::as_method(keyed_child<AccessorKind::GlobalWeakref>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"func_defaults_manager", python::as_method(plain_child<AccessorKind::FuncDefaults>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"func_kwdefaults_manager", python::as_method(plain_child<AccessorKind::FuncKwDefaults>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"func_code_manager", python::as_method(plain_child<AccessorKind::FuncCode>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"func_closure_manager", python::as_method(plain_child<AccessorKind::FuncClosure>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"cell_contents_manager", python::as_method(plain_child<AccessorKind::CellContents>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"grad_manager", python::as_method(plain_child<AccessorKind::Grad>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"tensor_size_manager", python::as_method(keyed_child<AccessorKind::TensorSize>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"tensor_stride_manager", python::as_method(keyed_child<AccessorKind::TensorStride>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"tensor_storage_offset_manager", python::as_method(plain_child<AccessorKind::TensorOffset>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"dict_key_manager", python::as_method(keyed_child<AccessorKind::DictKey>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"type_dict_manager", python::as_method(keyed_child<AccessorKind::ClassDict>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"type_mro_manager", python::as_method(plain_child<AccessorKind::Mro>),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"add_lambda_guard", add_leaf<LeafKind::Lambda>, METH_VARARGS, nullptr},
    {"add_type_match_guard", add_leaf<LeafKind::Type>, METH_VARARGS, nullptr},
    {"add_id_match_guard", add_leaf<LeafKind::Id>, METH_VARARGS, nullptr},
    {"add_object_match_guard", add_leaf<LeafKind::Object>, METH_VARARGS, nullptr},
    {"add_equals_match_guard", add_leaf<LeafKind::Equals>, METH_VARARGS, nullptr},
    {"add_none_match_guard", add_leaf<LeafKind::None>, METH_VARARGS, nullptr},
    {"add_not_none_guard", add_leaf<LeafKind::NotNone>, METH_VARARGS, nullptr},
    {"add_true_match_guard", add_leaf<LeafKind::True>, METH_VARARGS, nullptr},
    {"add_false_match_guard", add_leaf<LeafKind::False>, METH_VARARGS, nullptr},
    {"add_length_check_guard", add_leaf<LeafKind::Length>, METH_VARARGS, nullptr},
    {"add_dict_length_check_guard", add_leaf<LeafKind::DictLength>, METH_VARARGS, nullptr},
    {"add_tuple_iterator_length_guard", add_leaf<LeafKind::TupleIteratorLength>, METH_VARARGS,
     nullptr},
    {"add_no_hasattr_guard", add_leaf<LeafKind::NoHasAttr>, METH_VARARGS, nullptr},
    {"add_hasattr_guard", add_leaf<LeafKind::HasAttr>, METH_VARARGS, nullptr},
    {"add_default_device_guard", add_leaf<LeafKind::DefaultDevice>, METH_VARARGS, nullptr},
    {"add_data_ptr_guard", add_leaf<LeafKind::DataPtr>, METH_VARARGS, nullptr},
    {"add_dict_version_guard", add_leaf<LeafKind::DictVersion>, METH_VARARGS, nullptr},
    {"add_dict_contains_guard", add_leaf<LeafKind::DictContains>, METH_VARARGS, nullptr},
    {"add_dict_keys_guard", add_leaf<LeafKind::DictKeys>, METH_VARARGS, nullptr},
    {"add_dynamic_indices_guard", add_leaf<LeafKind::DynamicIndices>, METH_VARARGS, nullptr},
    {"add_tensor_match_guard", add_leaf<LeafKind::Tensor>, METH_VARARGS, nullptr},
    {"add_global_state_guard", add_leaf<LeafKind::Global>, METH_VARARGS, nullptr},
    {"add_class_reads_guard", add_leaf<LeafKind::Classes>, METH_VARARGS, nullptr},
    {"add_range_iterator_match_guard", add_leaf<LeafKind::RangeIterator>, METH_VARARGS, nullptr},
    {"add_float_is_nan_guard", add_leaf<LeafKind::FloatIsNan>, METH_VARARGS, nullptr},
    {"add_shape_int_guard", add_leaf<LeafKind::ShapeInt>, METH_VARARGS, nullptr},
    {"add_shape_tensor_guard", add_leaf<LeafKind::ShapeTensor>, METH_VARARGS, nullptr},
    {"get_leaf_guards", get_leaves, METH_NOARGS, "The conditions on the value itself."},
    {"get_accessors", get_accessors, METH_NOARGS, "The ways to parts of the value."},
    {"get_child_managers", get_children, METH_NOARGS, "The managers of parts of the value."},
    {"get_source", get_source, METH_NOARGS, "The expression of the value."},
    {"fail_count", get_failures, METH_NOARGS, "How often a check failed here."},
    {"check", py_check, METH_O, "Whether all conditions hold for the value."},
    {"check_verbose", py_check_verbose, METH_O, "GuardDebugInfo of a check of the value."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef root_methods[] = {
    {"add_epilogue_lambda_guard", add_epilogue<LeafKind::Lambda>, METH_VARARGS,
     "A condition on the frame as a whole, checked last."},
    {"add_symbolic_shape_guard", add_epilogue<LeafKind::Shape>, METH_VARARGS,
     "A program over sizes, run last."},
    {"get_epilogue_lambda_guards", get_epilogue, METH_NOARGS, nullptr},
    {"clone_manager", py_clone, METH_O, "The tree without the managers that a function refuses."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef dict_methods[] = {
    {"get_key_manager", python::as_method(pair_manager<true>), METH_VARARGS | METH_KEYWORDS,
     "The manager of the key at a place."},
    {"get_value_manager", python::as_method(pair_manager<false>), METH_VARARGS | METH_KEYWORDS,
     "The manager of the value at a place."},
    {"get_key_value_managers", get_pairs, METH_NOARGS, "{place: (key manager, value manager)}."},
    {nullptr, nullptr, 0, nullptr}};

// ---- guards over several values

PyObject* install_object_aliasing(PyObject*, PyObject* args) {
  PyObject *x = nullptr, *y = nullptr, *parts = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!O:install_object_aliasing_guard", &GuardManagerType, &x,
                        &GuardManagerType, &y, &parts)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    PyRef leaf = new_leaf(LeafKind::ObjectAliasing, checked(PyTuple_Pack(1, parts)).get());
    note_state(as_manager(x), leaf);
    as_manager(x)->state->leaves.push_back(leaf);
    as_manager(y)->state->leaves.push_back(leaf);
    return python::new_none();
  });
}
// A leaf that compares what several managers find with each other, in words `parts`.
enum class Between : uint8_t { Tensors, Objects, Memory };

template <Between between> PyObject* install_no_aliasing(PyObject*, PyObject* args) {
  PyObject *managers = nullptr, *names = nullptr, *parts = nullptr;
  if (!PyArg_ParseTuple(args, "OOO:install_no_aliasing_guard", &managers, &names, &parts))
    return nullptr;
  return guarded([&]() -> PyObject* {
    PyRef list = checked(PySequence_List(managers));
    const Py_ssize_t count = PyList_GET_SIZE(list.get());
    const LeafKind kind =
        between == Between::Memory ? LeafKind::NoOverlap : LeafKind::NoTensorAliasing;
    PyRef leaf = new_leaf(kind, checked(Py_BuildValue("(nO)", count, parts)).get());
    as_leaf(leaf.get())->flag = between == Between::Objects;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* manager = PyList_GET_ITEM(list.get(), i);
      if (!PyObject_TypeCheck(manager, &GuardManagerType))
        python::raise_type_error("expected a list of guard managers");
      if (i == 0) note_state(as_manager(manager), leaf);
      as_manager(manager)->state->leaves.push_back(leaf);
    }
    return python::new_none();
  });
}

PyObject* share_elements_of(PyObject*, PyObject* args) {
  PyObject *a = nullptr, *b = nullptr;
  if (!PyArg_ParseTuple(args, "OO:share_elements", &a, &b)) return nullptr;
  return guarded([&]() -> PyObject* {
    if (!python::is_tensor(a) || !python::is_tensor(b))
      python::raise_type_error("share_elements: expected two tensors");
    return PyBool_FromLong(share_elements(python::tensor_of(a), python::tensor_of(b)));
  });
}

PyMethodDef functions[] = {
    {"install_object_aliasing_guard", install_object_aliasing, METH_VARARGS,
     "Two values are one object."},
    {"install_no_tensor_aliasing_guard", install_no_aliasing<Between::Tensors>, METH_VARARGS,
     "No two of the tensors are one object."},
    {"install_no_object_aliasing_guard", install_no_aliasing<Between::Objects>, METH_VARARGS,
     "No two of the values are one object."},
    {"install_no_overlap_guard", install_no_aliasing<Between::Memory>, METH_VARARGS,
     "No two of the tensors have an element in common."},
    {"share_elements", share_elements_of, METH_VARARGS,
     "Whether two tensors of one storage have an element in common."},
    {nullptr, nullptr, 0, nullptr}};

// ---- types

int traverse(PyObject* self, visitproc visit, void* arg) {
  ManagerObject* manager = as_manager(self);
  Py_VISIT(manager->dict);
  if (!manager->state) return 0;
  for (const auto* list : {&manager->state->leaves, &manager->state->accessors,
                           &manager->state->stateful, &manager->state->epilogue}) {
    for (const PyRef& item : *list) Py_VISIT(item.get());
  }
  for (const KeyValue& pair : manager->state->pairs) {
    Py_VISIT(pair.key.get());
    Py_VISIT(pair.value.get());
  }
  return 0;
}
int clear(PyObject* self) {
  ManagerObject* manager = as_manager(self);
  Py_CLEAR(manager->dict);
  if (manager->state) {
    ManagerState taken;
    std::swap(taken, *manager->state);
    // A tree that was taken apart holds for nothing.
    manager->state->dict_type = &PyBaseObject_Type;
  }
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  ManagerObject* manager = as_manager(self);
  if (manager->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(manager->dict);
  delete manager->state;
  Py_TYPE(self)->tp_free(self);
}

PyGetSetDef manager_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

bool add_manager_type(PyObject* module, PyTypeObject* type, PyTypeObject* base,
                      PyMethodDef* methods) {
  type->tp_base = base;
  type->tp_basicsize = sizeof(ManagerObject);
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  type->tp_new = manager_new;
  type->tp_traverse = traverse;
  type->tp_clear = clear;
  type->tp_dealloc = dealloc;
  type->tp_dictoffset = offsetof(ManagerObject, dict);
  type->tp_weaklistoffset = offsetof(ManagerObject, weakrefs);
  type->tp_methods = methods;
  type->tp_getset = manager_attributes;
  type->tp_doc = "The guards on one value and its parts.";
  return python::add_type(module, type);
}

} // namespace

bool check_manager(ManagerObject* manager, PyObject* value, const FrameView& view) {
  return check(manager, value, view);
}

// A check may run the program's code, which may call the function that is being checked: the inner
// check leaves order and state to the outer one, and fails where it would need the state.
bool check_root(ManagerObject* root, PyObject* value, const FrameView& frame) {
  ManagerState& state = *root->state;
  FrameView view = frame;
  view.reorder = state.depth == 0;
  if (state.depth > 0 && !(state.stateful.empty() && state.epilogue.empty())) return false;
  if (!state.stateful.empty()) reset_state(state);
  ++state.depth;
  const bool holds =
      check(root, value, view) && (state.epilogue.empty() || check_epilogue(state, value, view));
  --state.depth;
  return holds;
}

bool init_guards(PyObject* module) {
  GuardDebugInfoType.tp_basicsize = sizeof(DebugInfoObject);
  GuardDebugInfoType.tp_flags = Py_TPFLAGS_DEFAULT;
  GuardDebugInfoType.tp_new = info_new;
  GuardDebugInfoType.tp_dealloc = info_dealloc;
  GuardDebugInfoType.tp_repr = info_repr;
  GuardDebugInfoType.tp_members = info_members;
  return python::add_type(module, &GuardDebugInfoType) &&
         add_manager_type(module, &GuardManagerType, nullptr, manager_methods) &&
         add_manager_type(module, &RootGuardManagerType, &GuardManagerType, root_methods) &&
         add_manager_type(module, &DictGuardManagerType, &GuardManagerType, dict_methods) &&
         add_manager_type(module, &DictSubclassGuardManagerType, &DictGuardManagerType, nullptr) &&
         init_leaf_guards(module) && init_accessors(module) && init_global_state(module) &&
         PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::dynamo
