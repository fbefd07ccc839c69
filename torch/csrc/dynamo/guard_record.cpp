// Taking and checking records (Note [Records of unchanged values]).
#include <torch/csrc/dynamo/guard_record.h>

#include <torch/csrc/python/nn/module_base.h>

#include <unordered_set>

namespace torch::dynamo {
namespace {

template <class T> const uint64_t* word_at(T* place) {
  static_assert(sizeof(T) == sizeof(uint64_t));
  return reinterpret_cast<const uint64_t*>(place);
}

// Values that are equal to what they were as long as they are the same object.
bool is_constant(PyObject* value) {
  if (PyTuple_CheckExact(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      if (!is_constant(PyTuple_GET_ITEM(value, i))) return false;
    return true;
  }
  return PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyFloat_CheckExact(value) ||
         PyBool_Check(value) || PyBytes_CheckExact(value) || PyComplex_CheckExact(value) ||
         value == Py_None || value == Py_Ellipsis;
}

} // namespace

// `held`: as long as the words before stand, the value is not only at the same address but has been
// alive all along.
class RecordTaker {
 public:
  explicit RecordTaker(Record& out) : out_(out) {}

  void manager(ManagerObject* manager, PyObject* value, bool held) {
    const ManagerState& state = *manager->state;
    for (const PyRef& leaf : state.leaves) this->leaf(as_leaf(leaf.get()), value, held);
    for (const PyRef& item : state.accessors) {
      AccessorObject* accessor = as_accessor(item.get());
      bool part_held = false;
      PyObject* part = this->part(accessor, value, held, part_held);
      if (part)
        this->manager(accessor->child, part, part_held);
      else
        out_.parts_.push_back({accessor, nullptr, value});
    }
    if (state.dict_type) pairs(manager, value, held);
  }

  // What an accessor leads to; null: to be fetched each time.
  PyObject* part(AccessorObject* accessor, PyObject* value, bool held, bool& part_held) {
    switch (accessor->kind) {
    case AccessorKind::Identity:
      part_held = held;
      return value;
    case AccessorKind::GetAttr:
      part_held = true;
      return attribute(accessor->key, value, held);
    case AccessorKind::GenericDict:
      return instance_dict(value);
    case AccessorKind::GetItem:
      if (!PyDict_CheckExact(value)) return sequence_item(accessor, value, held, part_held);
      [[fallthrough]];
    case AccessorKind::DictItem:
      return dict_item(accessor->key, value, held, part_held);
    case AccessorKind::ListItem:
    case AccessorKind::TupleItem:
      return sequence_item(accessor, value, held, part_held);
    case AccessorKind::Type:
      word(&value->ob_type);
      return reinterpret_cast<PyObject*>(Py_TYPE(value));
    case AccessorKind::ClassDict:
    case AccessorKind::Mro:
      part_held = true;
      return class_part(accessor, value);
    case AccessorKind::FuncDefaults:
    case AccessorKind::FuncKwDefaults:
    case AccessorKind::FuncCode:
    case AccessorKind::FuncClosure:
      return function_part(accessor->kind, value, held);
    case AccessorKind::CellContents:
      if (!PyCell_Check(value) || !PyCell_GET(value)) return nullptr;
      if (!held) word(&value->ob_type);
      word(&reinterpret_cast<PyCellObject*>(value)->ob_ref);
      return PyCell_GET(value);
    case AccessorKind::DictKey:
      return dict_key(accessor->index, value, held, part_held);
    default:
      return nullptr;
    }
  }

 private:
  Record& out_;
  std::unordered_set<const void*> pinned_;

  template <class T> void word(T* place) {
    const uint64_t* at = word_at(place);
    if (pinned_.insert(at).second) out_.words_.push_back({at, *at});
  }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  void contents(PyObject* dict, bool held) {
    if (!held) word(&dict->ob_type);
    word(&reinterpret_cast<PyDictObject*>(dict)->ma_version_tag);
  }
#pragma GCC diagnostic pop

  void list(PyObject* value) {
    auto* list = reinterpret_cast<PyListObject*>(value);
    word(&list->ob_base.ob_size);
    word(&list->ob_item);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) word(&list->ob_item[i]);
  }

  // Whether the class's attributes can be told to be unchanged.
  bool type_version(PyTypeObject* type) {
    if (type->tp_version_tag == 0) {
      static PyObject* name = PyUnicode_InternFromString("__class__");
      _PyType_Lookup(type, name); // gives the class a version
    }
    if (type->tp_version_tag == 0) return false;
    if (pinned_.insert(&type->tp_version_tag).second)
      out_.types_.push_back({&type->tp_version_tag, type->tp_version_tag});
    return true;
  }

  // The dictionary of an instance, pinned to it; null where it has none.
  // From 3.13 on attributes lie in the instance and change without a new version of it.
  PyObject* instance_dict(PyObject* value) {
    if (PY_VERSION_HEX >= 0x030D0000) return nullptr;
    PyObject** slot = _PyObject_GetDictPtr(value);
    if (!slot || !*slot || !PyDict_CheckExact(*slot)) return nullptr;
    word(&value->ob_type);
    word(slot);
    contents(*slot, true);
    return *slot;
  }

  // ---- conditions

  void leaf(LeafObject* leaf, PyObject* value, bool held) {
    switch (leaf->kind) {
    case LeafKind::None:
    case LeafKind::NotNone:
    case LeafKind::True:
    case LeafKind::False:
    case LeafKind::Id:
      return;
    case LeafKind::Type:
      if (!held || PyType_HasFeature(Py_TYPE(value), Py_TPFLAGS_HEAPTYPE)) word(&value->ob_type);
      return;
    case LeafKind::Tensor:
      out_.tensors_.push_back({value, leaf->tensor});
      return;
    case LeafKind::Object:
      if (held) return;
      break;
    case LeafKind::Equals:
    case LeafKind::FloatIsNan:
      if (!is_constant(value)) break;
      if (!held) out_.constants_.push_back(PyRef::borrow(value));
      return;
    case LeafKind::Length:
      if (PyTuple_CheckExact(value) && held) return;
      if (PyList_CheckExact(value)) {
        word(&reinterpret_cast<PyListObject*>(value)->ob_base.ob_size);
        if (!held) word(&value->ob_type);
        return;
      }
      if (!PyDict_CheckExact(value) && !PyODict_CheckExact(value)) break;
      contents(value, held);
      return;
    case LeafKind::DictLength:
    case LeafKind::DictContains:
    case LeafKind::DictVersion:
      if (!PyDict_Check(value)) break;
      contents(value, held);
      return;
    case LeafKind::DictKeys:
      if (!PyDict_CheckExact(value) && !(PyDict_Check(value) && PyDict_GET_SIZE(value) < 2)) break;
      contents(value, held);
      return;
    default:
      break;
    }
    out_.leaves_.push_back({leaf, value});
  }

  void pairs(ManagerObject* manager, PyObject* dict, bool held) {
    if (!PyDict_CheckExact(dict)) {
      out_.parts_.push_back({nullptr, manager, dict});
      return;
    }
    contents(dict, held);
    const ManagerState& state = *manager->state;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0, place = 0;
    size_t next = 0;
    for (; next < state.pairs.size() && PyDict_Next(dict, &position, &key, &value); ++place) {
      const KeyValue& pair = state.pairs[next];
      if (pair.place != place) continue;
      if (pair.key) this->manager(as_manager(pair.key.get()), key, true);
      if (pair.value) this->manager(as_manager(pair.value.get()), value, true);
      ++next;
    }
  }

  // ---- parts

  static PyObject* found(PyObject* dict, PyObject* key) {
    PyObject* item = PyDict_GetItemWithError(dict, key);
    if (!item) PyErr_Clear();
    return item;
  }

  PyObject* dict_item(PyObject* key, PyObject* dict, bool held, bool& part_held) {
    if (!PyDict_Check(dict)) return nullptr;
    contents(dict, held);
    part_held = true;
    return found(dict, key);
  }

  PyObject* dict_key(Py_ssize_t index, PyObject* dict, bool held, bool& part_held) {
    if (!PyDict_CheckExact(dict)) return nullptr;
    contents(dict, held);
    part_held = true;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; PyDict_Next(dict, &position, &key, &value); ++i)
      if (i == index) return key;
    return nullptr;
  }

  PyObject* sequence_item(AccessorObject* accessor, PyObject* value, bool held, bool& part_held) {
    if (!PyLong_CheckExact(accessor->key) || accessor->index < 0) return nullptr;
    if (PyTuple_CheckExact(value)) return tuple_item(accessor->index, value, held, part_held);
    if (!PyList_CheckExact(value) || accessor->index >= PyList_GET_SIZE(value)) return nullptr;
    if (!held) word(&value->ob_type);
    list(value);
    return PyList_GET_ITEM(value, accessor->index);
  }

  // Tuples do not change, but one that died may have given its address to another.
  PyObject* tuple_item(Py_ssize_t index, PyObject* value, bool held, bool& part_held) {
    if (index >= PyTuple_GET_SIZE(value)) return nullptr;
    auto* tuple = reinterpret_cast<PyTupleObject*>(value);
    part_held = held;
    if (!held) {
      word(&value->ob_type);
      word(&tuple->ob_base.ob_size);
      word(&tuple->ob_item[index]);
    }
    return tuple->ob_item[index];
  }

  PyObject* class_part(AccessorObject* accessor, PyObject* value) {
    if (!PyType_Check(value)) return nullptr;
    auto* type = reinterpret_cast<PyTypeObject*>(value);
    if (!type_version(type)) return nullptr;
    if (accessor->kind == AccessorKind::Mro) return type->tp_mro;
    return type->tp_dict ? found(type->tp_dict, accessor->key) : nullptr;
  }

  PyObject* function_part(AccessorKind kind, PyObject* value, bool held) {
    if (!PyFunction_Check(value)) return nullptr;
    if (!held) word(&value->ob_type);
    auto* function = reinterpret_cast<PyFunctionObject*>(value);
    PyObject** field = kind == AccessorKind::FuncDefaults     ? &function->func_defaults
                       : kind == AccessorKind::FuncKwDefaults ? &function->func_kwdefaults
                       : kind == AccessorKind::FuncCode       ? &function->func_code
                                                              : &function->func_closure;
    word(field);
    return *field ? *field : Py_None;
  }

  // What reading an attribute gives, where neither a descriptor nor the program's code is asked.
  PyObject* attribute(PyObject* name, PyObject* value, bool held) {
    PyTypeObject* type = Py_TYPE(value);
    if (!PyUnicode_CheckExact(name) || PyType_Check(value) || python::is_tensor(value))
      return nullptr;
    if (PyModule_CheckExact(value)) {
      if (!held || _PyType_Lookup(type, name)) return nullptr;
      contents(PyModule_GetDict(value), true);
      return found(PyModule_GetDict(value), name);
    }
    if (!reads_instance_first(type)) return nullptr;
    PyObject* of_class = _PyType_Lookup(type, name);
    if (of_class && Py_TYPE(of_class)->tp_descr_get && Py_TYPE(of_class)->tp_descr_set)
      return nullptr;
    PyObject* dict = instance_dict(value);
    if (!dict || !type_version(type)) return nullptr;
    if (PyObject* own = found(dict, name)) return own;
    if (of_class) return Py_TYPE(of_class)->tp_descr_get ? nullptr : of_class;
    return python::has_module_lookup(type) ? module_member(dict, name) : nullptr;
  }

  // A parameter, buffer or child of a module.
  PyObject* module_member(PyObject* dict, PyObject* name) {
    for (const char* table : {"_parameters", "_buffers", "_modules"}) {
      PyObject* members = PyDict_GetItemString(dict, table);
      if (!members || !PyDict_CheckExact(members)) return nullptr;
      contents(members, true);
      if (PyObject* member = found(members, name)) return member;
    }
    return nullptr;
  }
};

std::unique_ptr<Record> Record::take(ManagerObject* manager, PyObject* value) {
  auto out = std::make_unique<Record>();
  RecordTaker(*out).manager(manager, value, false);
  if (out->words_.empty() && out->types_.empty()) return nullptr;
  return out;
}

std::unique_ptr<Record> Record::follow(const std::vector<ReadStep>& steps,
                                       std::vector<PyObject*>& values) {
  auto out = std::make_unique<Record>();
  RecordTaker taker(*out);
  std::vector<bool> held(values.size(), false);
  for (const ReadStep& step : steps) {
    bool part_held = false;
    PyObject* part =
        taker.part(as_accessor(step.accessor.get()), values[step.base], held[step.base], part_held);
    if (!part) return nullptr;
    values.push_back(part);
    held.push_back(part_held);
  }
  return out;
}

Record::Outcome Record::check(const FrameView& view) const {
  for (const Word& word : words_)
    if (C10_UNLIKELY(*word.at != word.value)) return Outcome::Changed;
  for (const TypeVersion& type : types_)
    if (C10_UNLIKELY(*type.at != type.value)) return Outcome::Changed;
  for (const TensorCheck& tensor : tensors_)
    if (C10_UNLIKELY(!tensor.pattern->matches(tensor.value))) return Outcome::Fails;
  if (leaves_.empty() && parts_.empty()) return Outcome::Holds;
  return check_others(view) ? Outcome::Holds : Outcome::Fails;
}

// These may run code of the program, which may take values from where they were: all are held
// first.
bool Record::check_others(const FrameView& view) const {
  for (const LeafCheck& one : leaves_) Py_INCREF(one.value);
  for (const PartCheck& one : parts_) Py_INCREF(one.value);
  bool holds = true;
  for (size_t i = 0; holds && i < leaves_.size(); ++i)
    holds = check_leaf(leaves_[i].leaf, leaves_[i].value);
  for (size_t i = 0; holds && i < parts_.size(); ++i) {
    const PartCheck& one = parts_[i];
    if (!one.accessor) {
      holds = check_manager(one.manager, one.value, view);
      continue;
    }
    PyRef owned;
    PyObject* part = fetch(one.accessor, one.value, view, owned);
    if (!part) PyErr_Clear();
    holds = part && check_manager(one.accessor->child, part, view);
  }
  for (const LeafCheck& one : leaves_) Py_DECREF(one.value);
  for (const PartCheck& one : parts_) Py_DECREF(one.value);
  return holds;
}

Record::Outcome RecordTable::check(PyObject* value, uint64_t edits, const FrameView& view) {
  if (C10_UNLIKELY(edits != edits_)) {
    slots_.clear();
    edits_ = edits;
    return Record::Outcome::Changed;
  }
  for (Slot& slot : slots_) {
    if (slot.value != value) continue;
    if (!slot.record) break;
    const Record::Outcome outcome = slot.record->check(view);
    if (outcome == Record::Outcome::Changed)
      ++misses_;
    else
      ++hits_;
    return outcome;
  }
  return Record::Outcome::Changed;
}

bool RecordTable::note(ManagerObject* manager, PyObject* value) {
  constexpr long kPatience = 8, kHitsPerMiss = 16;
  if (misses_ > kPatience + hits_ / kHitsPerMiss) return false;
  for (Slot& slot : slots_) {
    if (slot.value != value) continue;
    slot.record = Record::take(manager, value);
    return slot.record != nullptr;
  }
  // Seen for the first time: many values are never seen again.
  if (slots_.size() < kSlots) {
    slots_.push_back({value, nullptr});
  } else {
    slots_[next_] = {value, nullptr};
    next_ = (next_ + 1) % kSlots;
  }
  return true;
}

} // namespace torch::dynamo
