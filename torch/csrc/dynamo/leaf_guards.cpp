// The conditions on single values, and those that leaves of several values check together. Each
// kind is a Python type of the name that PyTorch gives it, callable with a value; the tree calls
// the same check without going through Python.
#include <torch/csrc/dynamo/guards.h>

#include <torch/csrc/dynamo/class_reads.h>
#include <torch/csrc/dynamo/shape_program.h>
#include <torch/csrc/dynamo/value_sets.h>

#include <cmath>
#include <cstring>

namespace torch::dynamo {

// Pointers seen during a check, without allocation after the first: entries of earlier checks are
// told apart by their stamp.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
uint64_t dict_version(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}
#pragma GCC diagnostic pop

namespace {

using python::check_status;
using python::checked;
using python::guarded;
using python::raise;

struct LeafSpec {
  LeafKind kind;
  const char* name;
  int arguments; // before the texts
};
constexpr LeafSpec kLeaves[] = {
    {LeafKind::Lambda, "LAMBDA_GUARD", 1},
    {LeafKind::Type, "TYPE_MATCH", 1},
    {LeafKind::Id, "ID_MATCH", 1},
    {LeafKind::Object, "OBJECT_MATCH", 1},
    {LeafKind::Equals, "EQUALS_MATCH", 1},
    {LeafKind::None, "NONE_MATCH", 0},
    {LeafKind::NotNone, "NOT_NONE", 0},
    {LeafKind::True, "TRUE_MATCH", 0},
    {LeafKind::False, "FALSE_MATCH", 0},
    {LeafKind::Length, "LENGTH_CHECK", 1},
    {LeafKind::DictLength, "DICT_LENGTH", 1},
    {LeafKind::TupleIteratorLength, "TUPLE_ITERATOR_LEN", 2},
    {LeafKind::NoHasAttr, "NO_HASATTR", 1},
    {LeafKind::HasAttr, "HASATTR", 1},
    {LeafKind::DefaultDevice, "DEFAULT_DEVICE", 0},
    {LeafKind::DataPtr, "DATA_PTR_MATCH", 1},
    {LeafKind::DictVersion, "DICT_VERSION", 1},
    {LeafKind::DictContains, "DICT_CONTAINS", 2},
    {LeafKind::DictKeys, "DICT_KEYS", 1},
    {LeafKind::DynamicIndices, "DYNAMIC_INDICES", 1},
    {LeafKind::Tensor, "TENSOR_MATCH", 4},
    {LeafKind::Global, "GLOBAL_STATE", 0},
    {LeafKind::NoTensorAliasing, "NO_TENSOR_ALIASING", 1},
    {LeafKind::NoOverlap, "NO_STORAGE_OVERLAP", 1},
    {LeafKind::ObjectAliasing, "OBJECT_ALIASING", 0},
    {LeafKind::RangeIterator, "RANGE_ITERATOR_MATCH", 1},
    {LeafKind::FloatIsNan, "FLOAT_IS_NAN", 0},
    {LeafKind::ShapeInt, "SHAPE_INT", 2},
    {LeafKind::ShapeTensor, "SHAPE_TENSOR", 2},
    {LeafKind::Shape, "SYMBOLIC_SHAPE_GUARD", 2},
    {LeafKind::Classes, "CLASS_READS", 3},
};
constexpr size_t kLeafCount = sizeof(kLeaves) / sizeof(kLeaves[0]);

PyTypeObject LeafType = python::type_object("torch._C._dynamo.guards.LeafGuard");
PyTypeObject* leaf_types[kLeafCount];

const LeafSpec& spec_of(LeafKind kind) { return kLeaves[static_cast<size_t>(kind)]; }

// The device that tensors are made on where none is named: an object, or null for "none set".
PyRef default_device() {
  static PyObject* space = nullptr;
  if (!space) {
    PyRef module = checked(PyImport_ImportModule("torch.utils._device"));
    space = PyRef::borrow(PyModule_GetDict(module.get())).release();
  }
  PyObject* context = PyDict_GetItemString(space, "_global");
  if (!context || context == Py_None) return PyRef();
  return checked(PyObject_GetAttrString(context, "device"));
}

// ---- construction

intptr_t as_number(PyObject* value) {
  const intptr_t number = static_cast<intptr_t>(PyLong_AsSsize_t(value));
  if (number == -1 && PyErr_Occurred()) throw python::python_error();
  return number;
}

std::vector<int64_t> numbers_of(PyObject* list, c10::IntArrayRef actual) {
  PyRef items = checked(PySequence_List(list));
  std::vector<int64_t> out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    out.push_back(PyLong_Check(item) ? as_number(item) : TensorPattern::kAny);
  }
  if (out.size() != actual.size())
    raise(PyExc_ValueError, "TENSOR_MATCH: expected one number, or None, per dimension");
  return out;
}

void fill_tensor(LeafObject* leaf, PyObject* args) {
  PyObject* example = PyTuple_GET_ITEM(args, 0);
  if (!python::is_tensor(example)) python::raise_type_error("TENSOR_MATCH: expected a tensor");
  const at::Tensor& t = python::tensor_of(example);
  if (!t.defined()) raise(PyExc_ValueError, "TENSOR_MATCH: the tensor is empty");
  const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
  leaf->tensor = new TensorPattern{Py_TYPE(example),
                                   impl->key_set().raw(),
                                   impl->dtype(),
                                   impl->device(),
                                   impl->requires_grad(),
                                   {},
                                   {}};
  leaf->tensor->sizes = numbers_of(PyTuple_GET_ITEM(args, 1), impl->sizes());
  PyObject* strides = PyTuple_GET_ITEM(args, 2);
  if (strides != Py_None && impl->layout() == c10::Layout::Strided)
    leaf->tensor->strides = numbers_of(strides, impl->sizes());
  leaf->value = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(example))).release();
  leaf->extra = PyRef::borrow(PyTuple_GET_ITEM(args, 3)).release();
}

// A weak reference where the object allows one; what does not is a value of a builtin type.
PyRef weakly(PyObject* object) {
  if (PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) {
    PyRef ref(PyWeakref_NewRef(object, nullptr));
    if (ref) return ref;
    PyErr_Clear();
  }
  return PyRef::borrow(object);
}

ShapeProgram* program_of(PyObject* capsule) {
  void* p = PyCapsule_GetPointer(capsule, "shape_program");
  if (!p) throw python::python_error();
  return static_cast<ShapeProgram*>(p);
}

intptr_t slot_number(LeafObject* leaf, PyObject* value) {
  const intptr_t slot = as_number(value);
  if (slot < 0 ||
      (leaf->kind != LeafKind::Shape && static_cast<size_t>(slot) >= leaf->program->slots.size())) {
    raise(PyExc_ValueError, "a shape program has no slot " + std::to_string(slot));
  }
  return slot;
}

// Rows of (slot, what, dimension) as put_tensor reads them.
PyRef slot_rows(LeafObject* leaf, PyObject* rows) {
  PyRef list = checked(PySequence_Tuple(rows));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i) {
    PyObject* row = PyTuple_GET_ITEM(list.get(), i);
    int slot = 0, what = 0, dim = 0;
    if (!PyTuple_Check(row)) python::raise_type_error("SHAPE_TENSOR: expected tuples");
    if (!PyArg_ParseTuple(row, "iii", &slot, &what, &dim)) throw python::python_error();
    slot_number(leaf, PyTuple_GET_ITEM(row, 0));
    if (what < 0 || what > 2 || dim < 0)
      raise(PyExc_ValueError, "SHAPE_TENSOR: a row is (slot, 0 size 1 stride 2 offset, dimension)");
  }
  return list;
}

void fill(LeafObject* leaf, PyObject* args) {
  const auto argument = [&](int i) { return PyTuple_GET_ITEM(args, i); };
  const auto keep = [](PyObject*& slot, PyRef value) { slot = value.release(); };
  switch (leaf->kind) {
  case LeafKind::Type:
  case LeafKind::Id:
  case LeafKind::Length:
  case LeafKind::DictLength:
    leaf->number = as_number(argument(0));
    break;
  case LeafKind::TupleIteratorLength:
    leaf->number = as_number(argument(0));
    break;
  case LeafKind::Object:
    keep(leaf->value, weakly(argument(0)));
    leaf->number = reinterpret_cast<intptr_t>(argument(0));
    leaf->flag = PyWeakref_Check(leaf->value) && !PyWeakref_Check(argument(0));
    break;
  case LeafKind::DataPtr:
    if (!python::is_tensor(argument(0)))
      python::raise_type_error("DATA_PTR_MATCH: expected a tensor");
    leaf->number = reinterpret_cast<intptr_t>(python::tensor_of(argument(0)).const_data_ptr());
    break;
  case LeafKind::DictVersion:
    if (!PyDict_Check(argument(0))) python::raise_type_error("DICT_VERSION: expected a dict");
    leaf->number = static_cast<intptr_t>(dict_version(argument(0)));
    break;
  case LeafKind::DictContains: {
    const int wanted = PyObject_IsTrue(argument(0));
    check_status(wanted);
    leaf->flag = wanted != 0;
    keep(leaf->value, PyRef::borrow(argument(1)));
    break;
  }
  case LeafKind::DefaultDevice:
    keep(leaf->value, default_device());
    break;
  case LeafKind::Tensor:
    fill_tensor(leaf, args);
    break;
  case LeafKind::Global:
    leaf->global = new GlobalState(GlobalState::now());
    break;
  case LeafKind::NoTensorAliasing:
    leaf->seen = new PointerSet(static_cast<size_t>(as_number(argument(0))));
    break;
  case LeafKind::NoOverlap:
    leaf->memory = new MemorySet(static_cast<size_t>(as_number(argument(0))));
    break;
  case LeafKind::DictKeys:
    keep(leaf->value, checked(PySequence_Tuple(argument(0))));
    break;
  case LeafKind::Classes:
    leaf->classes = new ClassReads(argument(0), argument(1), argument(2));
    break;
  case LeafKind::ShapeInt:
  case LeafKind::ShapeTensor:
  case LeafKind::Shape:
    leaf->program = program_of(argument(0));
    ++leaf->program->references;
    if (leaf->kind == LeafKind::ShapeTensor)
      keep(leaf->value, slot_rows(leaf, argument(1)));
    else
      leaf->number = slot_number(leaf, argument(1));
    break;
  default:
    if (spec_of(leaf->kind).arguments > 0) keep(leaf->value, PyRef::borrow(argument(0)));
  }
}

// ---- checks

bool equal_values(PyObject* a, PyObject* b);

bool equal_parts(PyObject* a, PyObject* b, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const PyRef x(PyObject_GetAttrString(a, name)), y(PyObject_GetAttrString(b, name));
    if (!x || !y) PyErr_Clear();
    if (!x || !y || !equal_values(x.get(), y.get())) return false;
  }
  return true;
}

// More than ==: zeros of different sign are different constants, and so are 1, True and 1.0 within
// a tuple, and ranges with other bounds.
bool equal_values(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyComplex_CheckExact(a)) return equal_parts(a, b, {"real", "imag"});
  if (PyRange_Check(a)) return equal_parts(a, b, {"start", "stop", "step"});
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!equal_values(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

bool truth_of(PyRef result) {
  const int truth = result ? PyObject_IsTrue(result.get()) : -1;
  if (truth < 0) PyErr_Clear();
  return truth > 0;
}

bool has_attribute(PyObject* value, PyObject* name) {
  PyRef found(PyObject_GetAttr(value, name));
  if (!found) PyErr_Clear();
  return static_cast<bool>(found);
}

// An ordered dictionary keeps its order apart: the table below stays when keys are moved.
bool ordered_keys_match(PyObject* wanted, PyObject* dict) {
  PyRef keys(PyODict_Type.tp_iter(dict));
  for (Py_ssize_t i = 0; keys; ++i) {
    PyRef key(PyIter_Next(keys.get()));
    if (!key) break;
    if (i >= PyTuple_GET_SIZE(wanted)) return false;
    if (!equal_values(PyTuple_GET_ITEM(wanted, i), key.get())) return false;
  }
  const bool failed = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  return !failed;
}

bool keys_match(PyObject* wanted, PyObject* dict) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(wanted)) return false;
  if (PyODict_Check(dict) && PyDict_GET_SIZE(dict) > 1) return ordered_keys_match(wanted, dict);
  PyObject *key = nullptr, *item = nullptr;
  Py_ssize_t position = 0;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &position, &key, &item); ++i) {
    if (i >= PyTuple_GET_SIZE(wanted)) return false;
    PyRef held = PyRef::borrow(key);
    if (!equal_values(PyTuple_GET_ITEM(wanted, i), key)) return false;
  }
  return true;
}

bool contains(PyObject* dict, PyObject* key) {
  const int found =
      PyDict_Check(dict) ? PyDict_Contains(dict, key) : PySequence_Contains(dict, key);
  if (found < 0) PyErr_Clear();
  return found > 0;
}

bool indices_match(PyObject* allowed, PyObject* value) {
  static PyObject* name = PyUnicode_InternFromString("_dynamo_dynamic_indices");
  PyRef marked(PyObject_GetAttr(value, name));
  if (!marked) {
    PyErr_Clear();
    return true;
  }
  PyRef subset(PyObject_CallMethod(marked.get(), "issubset", "O", allowed));
  return truth_of(std::move(subset));
}

bool device_matches(PyObject* wanted) {
  const PyRef current = default_device();
  if (!wanted || !current) return !wanted && !current;
  return equal_values(wanted, current.get());
}

// What is left of a tuple's iterator; -1 for other objects.
Py_ssize_t left_of(PyObject* iterator) {
  if (Py_TYPE(iterator) != &PyTupleIter_Type) return -1;
  const Py_ssize_t left = PyObject_LengthHint(iterator, 0);
  if (left < 0) PyErr_Clear();
  return left;
}

bool reduces_equal(PyObject* wanted, PyObject* value) {
  if (Py_TYPE(wanted) != Py_TYPE(value)) return false;
  PyRef a(PyObject_CallMethod(wanted, "__reduce__", nullptr));
  PyRef b(PyObject_CallMethod(value, "__reduce__", nullptr));
  if (!a || !b) {
    PyErr_Clear();
    return false;
  }
  return equal_values(a.get(), b.get());
}

bool put_int(LeafObject* leaf, PyObject* value) {
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  leaf->program->slots[leaf->number] = PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow == 0;
}

// `value` is a tuple of (slot, what, dimension); what: 0 size, 1 stride, 2 offset.
bool put_tensor(LeafObject* leaf, PyObject* value) {
  if (!python::is_tensor(value)) return false;
  const c10::TensorImpl* impl = python::tensor_of(value).unsafeGetTensorImpl();
  if (!impl) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaf->value); ++i) {
    PyObject* row = PyTuple_GET_ITEM(leaf->value, i);
    const auto field = [&](int j) { return PyLong_AsLong(PyTuple_GET_ITEM(row, j)); };
    const long slot = field(0), what = field(1), dim = field(2);
    if (what != 2 && static_cast<size_t>(dim) >= impl->sizes().size()) return false;
    leaf->program->slots[slot] = what == 0   ? impl->sizes()[dim]
                                 : what == 1 ? impl->strides()[dim]
                                             : impl->storage_offset();
  }
  return true;
}

bool length_is(LeafObject* leaf, PyObject* value) {
  const Py_ssize_t length = PyList_CheckExact(value)    ? PyList_GET_SIZE(value)
                            : PyTuple_CheckExact(value) ? PyTuple_GET_SIZE(value)
                            : PyDict_CheckExact(value) || PyODict_CheckExact(value)
                                ? PyDict_GET_SIZE(value)
                                : PyObject_Length(value);
  if (length < 0) PyErr_Clear();
  return length == leaf->number;
}

// What makes two values one. A tensor has its Python object only as long as somebody holds it: that
// of a gradient may be freed as soon as it was read, and the next one stand at the same address.
const void* identity_of(PyObject* value) {
  if (!python::is_tensor(value)) return value;
  return python::tensor_of(value).unsafeGetTensorImpl();
}

bool aliases(LeafObject* leaf, PyObject* value) {
  const void* identity = identity_of(value);
  if (leaf->first) return leaf->first == identity;
  leaf->first = identity;
  return true;
}

} // namespace

bool check_leaf(LeafObject* leaf, PyObject* value) {
  switch (leaf->kind) {
  case LeafKind::Type:
    return reinterpret_cast<intptr_t>(Py_TYPE(value)) == leaf->number;
  case LeafKind::Id:
    return reinterpret_cast<intptr_t>(value) == leaf->number;
  case LeafKind::Object:
    return leaf->flag ? PyWeakref_GET_OBJECT(leaf->value) == value && value != Py_None
                      : leaf->value == value;
  case LeafKind::Equals:
    return equal_values(leaf->value, value);
  case LeafKind::None:
    return value == Py_None;
  case LeafKind::NotNone:
    return value != Py_None;
  case LeafKind::True:
    return value == Py_True;
  case LeafKind::False:
    return value == Py_False;
  case LeafKind::Tensor:
    return leaf->tensor->matches(value);
  case LeafKind::Length:
    return length_is(leaf, value);
  case LeafKind::DictLength:
    return PyDict_Check(value) && PyDict_GET_SIZE(value) == leaf->number;
  case LeafKind::TupleIteratorLength:
    return left_of(value) == leaf->number;
  case LeafKind::NoHasAttr:
    return !has_attribute(value, leaf->value);
  case LeafKind::HasAttr:
    return has_attribute(value, leaf->value);
  case LeafKind::DefaultDevice:
    return device_matches(leaf->value);
  case LeafKind::DataPtr:
    return python::is_tensor(value) &&
           reinterpret_cast<intptr_t>(python::tensor_of(value).const_data_ptr()) == leaf->number;
  case LeafKind::DictVersion:
    return PyDict_Check(value) && static_cast<intptr_t>(dict_version(value)) == leaf->number;
  case LeafKind::DictContains:
    return contains(value, leaf->value) == leaf->flag;
  case LeafKind::DictKeys:
    return keys_match(leaf->value, value);
  case LeafKind::DynamicIndices:
    return indices_match(leaf->value, value);
  case LeafKind::Global:
    return *leaf->global == GlobalState::now();
  case LeafKind::NoTensorAliasing:
    return leaf->seen->add(identity_of(value));
  case LeafKind::NoOverlap:
    return !python::is_tensor(value) || leaf->memory->add(python::tensor_of(value));
  case LeafKind::ObjectAliasing:
    return aliases(leaf, value);
  case LeafKind::RangeIterator:
    return reduces_equal(leaf->value, value);
  case LeafKind::FloatIsNan:
    return PyFloat_CheckExact(value) && std::isnan(PyFloat_AS_DOUBLE(value));
  case LeafKind::ShapeInt:
    return put_int(leaf, value);
  case LeafKind::ShapeTensor:
    return put_tensor(leaf, value);
  case LeafKind::Shape:
    return leaf->program->first_failure() < 0;
  case LeafKind::Classes:
    return leaf->classes->hold();
  case LeafKind::Lambda:
    return truth_of(PyRef(PyObject_CallOneArg(leaf->value, value)));
  }
  return false;
}

bool has_state(const LeafObject* leaf) {
  return leaf->kind == LeafKind::ObjectAliasing || leaf->seen || leaf->memory;
}

void reset_leaf(LeafObject* leaf) {
  leaf->first = nullptr;
  if (leaf->seen) leaf->seen->clear();
  if (leaf->memory) leaf->memory->clear();
}

PyRef leaf_failure(LeafObject* leaf, PyObject* value) {
  std::string text;
  switch (leaf->kind) {
  case LeafKind::Tensor:
    text = leaf->tensor->difference(value, python::text_of(leaf->extra));
    break;
  case LeafKind::Global:
    text = "GLOBAL_STATE changed: " + leaf->global->changes();
    break;
  case LeafKind::NoTensorAliasing:
    if (!leaf->flag) text = "Duplicate tensors found: ";
    break;
  case LeafKind::Shape: {
    const int which = leaf->program->first_failure();
    if (which >= 0 && which < PyList_GET_SIZE(leaf->parts))
      text = python::text_of(PyList_GET_ITEM(leaf->parts, which));
    break;
  }
  default:
    break;
  }
  if (text.empty()) return PyRef::borrow(leaf->parts);
  if (leaf->kind == LeafKind::NoTensorAliasing)
    text +=
        PyList_GET_SIZE(leaf->parts) > 0 ? python::text_of(PyList_GET_ITEM(leaf->parts, 0)) : "";
  PyRef out = checked(PyList_New(1));
  PyList_SET_ITEM(out.get(), 0, checked(PyUnicode_FromString(text.c_str())).release());
  return out;
}

bool is_leaf(PyObject* o) { return PyObject_TypeCheck(o, &LeafType); }

PyRef new_leaf(LeafKind kind, PyObject* args) {
  const LeafSpec& spec = spec_of(kind);
  const Py_ssize_t given = PyTuple_GET_SIZE(args);
  if (given != spec.arguments + 1) {
    python::raise_type_error(std::string(spec.name) + ": expected " +
                             std::to_string(spec.arguments + 1) + " arguments, got " +
                             std::to_string(given));
  }
  PyTypeObject* type = leaf_types[static_cast<size_t>(kind)];
  PyRef out = checked(type->tp_alloc(type, 0));
  LeafObject* leaf = as_leaf(out.get());
  leaf->kind = kind;
  PyObject* parts = PyTuple_GET_ITEM(args, given - 1);
  leaf->parts = PyUnicode_Check(parts) ? checked(Py_BuildValue("[O]", parts)).release()
                                       : checked(PySequence_List(parts)).release();
  fill(leaf, args);
  return out;
}

// ---- the Python types

namespace {

PyObject* leaf_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0)
      python::raise_type_error("guards take no keyword arguments");
    for (size_t i = 0; i < kLeafCount; ++i)
      if (leaf_types[i] == type) return new_leaf(kLeaves[i].kind, args).release();
    python::raise_type_error("LeafGuard cannot be made by itself");
  });
}

int leaf_traverse(PyObject* self, visitproc visit, void* arg) {
  LeafObject* leaf = as_leaf(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(leaf->value);
  Py_VISIT(leaf->extra);
  Py_VISIT(leaf->parts);
  return leaf->classes ? leaf->classes->traverse(visit, arg) : 0;
}
int leaf_clear(PyObject* self) {
  LeafObject* leaf = as_leaf(self);
  // The pattern of a tensor uses the type that `value` keeps; checks after this find nothing.
  if (leaf->kind == LeafKind::Tensor) return 0;
  if (leaf->kind == LeafKind::Lambda) {
    Py_INCREF(Py_None);
    Py_XSETREF(leaf->value, Py_None);
  }
  return 0;
}
void leaf_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  LeafObject* leaf = as_leaf(self);
  Py_XDECREF(leaf->value);
  Py_XDECREF(leaf->extra);
  Py_XDECREF(leaf->parts);
  delete leaf->tensor;
  delete leaf->global;
  delete leaf->seen;
  delete leaf->memory;
  delete leaf->classes;
  if (leaf->program && --leaf->program->references == 0) delete leaf->program;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* leaf_call(PyObject* self, PyObject* args, PyObject*) {
  PyObject* value = nullptr;
  if (!PyArg_ParseTuple(args, "O:guard", &value)) return nullptr;
  LeafObject* leaf = as_leaf(self);
  reset_leaf(leaf);
  return python::new_bool(check_leaf(leaf, value));
}
PyObject* leaf_verbose(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    LeafObject* leaf = as_leaf(self);
    reset_leaf(leaf);
    const bool holds = check_leaf(leaf, value);
    PyRef parts = holds ? checked(PyList_New(0)) : leaf_failure(leaf, value);
    PyRef module = checked(PyImport_ImportModule("torch._C._dynamo.guards"));
    return PyObject_CallMethod(module.get(), "GuardDebugInfo", "OOi", holds ? Py_True : Py_False,
                               parts.get(), 0);
  });
}
PyObject* leaf_parts(PyObject* self, PyObject*) { return PySequence_List(as_leaf(self)->parts); }
PyMethodDef leaf_methods[] = {
    {"check_verbose", leaf_verbose, METH_O, "GuardDebugInfo of a check of the value."},
    {"verbose_code_parts", leaf_parts, METH_NOARGS, "The condition in words."},
    {nullptr, nullptr, 0, nullptr}};

// _shape_program(steps, slots): the program that SHAPE_INT and SHAPE_TENSOR fill.
void free_unused(PyObject* capsule) {
  auto* program = static_cast<ShapeProgram*>(PyCapsule_GetPointer(capsule, "shape_program"));
  if (program && --program->references == 0) delete program;
}
PyObject* py_shape_program(PyObject*, PyObject* args) {
  PyObject* steps = nullptr;
  long long slots = 0;
  if (!PyArg_ParseTuple(args, "OL:_shape_program", &steps, &slots)) return nullptr;
  return guarded([&]() -> PyObject* {
    ShapeProgram* program = new_shape_program(steps, slots);
    program->references = 1;
    PyObject* capsule = PyCapsule_New(program, "shape_program", free_unused);
    if (!capsule) delete program;
    return capsule;
  });
}
PyMethodDef functions[] = {{"_shape_program", py_shape_program, METH_VARARGS,
                            "_shape_program(steps, slots): conditions on sizes as one program."},
                           {nullptr, nullptr, 0, nullptr}};

bool add_leaf_type(PyObject* module, size_t index) {
  static std::string names[kLeafCount]; // types keep the pointer
  names[index] = std::string("torch._C._dynamo.guards.") + kLeaves[index].name;
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(leaf_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(leaf_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(leaf_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(leaf_clear)},
                         {0, nullptr}};
  PyType_Spec spec = {names[index].c_str(), sizeof(LeafObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  PyRef bases(Py_BuildValue("(O)", &LeafType));
  PyRef type(bases ? PyType_FromSpecWithBases(&spec, bases.get()) : nullptr);
  if (!type) return false;
  leaf_types[index] = reinterpret_cast<PyTypeObject*>(PyRef(type).release());
  return python::add_object(module, kLeaves[index].name, type.release());
}

} // namespace

bool init_leaf_guards(PyObject* module) {
  LeafType.tp_basicsize = sizeof(LeafObject);
  LeafType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  LeafType.tp_traverse = leaf_traverse;
  LeafType.tp_clear = leaf_clear;
  LeafType.tp_dealloc = leaf_dealloc;
  LeafType.tp_call = leaf_call;
  LeafType.tp_methods = leaf_methods;
  LeafType.tp_doc = "A condition on one value.";
  if (!python::add_type(module, &LeafType)) return false;
  for (size_t i = 0; i < kLeafCount; ++i)
    if (!add_leaf_type(module, i)) return false;
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::dynamo
