// How the guard tree gets from a value to its parts. Reads that CPython does without running a
// program's code return borrowed references; the others hand the new reference to the caller.
#include <torch/csrc/dynamo/guards.h>
#include <torch/csrc/python/nn/module_base.h>

namespace torch::dynamo {
namespace {

using python::checked;

struct AccessorSpec {
  AccessorKind kind;
  const char* name;
};
constexpr AccessorSpec kAccessors[] = {
    {AccessorKind::FrameLocal, "FrameLocalsGuardAccessor"},
    {AccessorKind::Globals, "GlobalsGuardAccessor"},
    {AccessorKind::GetAttr, "GetAttrGuardAccessor"},
    {AccessorKind::GenericDict, "GetGenericDictGuardAccessor"},
    {AccessorKind::GetItem, "GetItemGuardAccessor"},
    {AccessorKind::DictItem, "DictGetItemGuardAccessor"},
    {AccessorKind::ListItem, "ListGetItemGuardAccessor"},
    {AccessorKind::TupleItem, "TupleGetItemGuardAccessor"},
    {AccessorKind::Type, "TypeGuardAccessor"},
    {AccessorKind::Lambda, "PythonLambdaGuardAccessor"},
    {AccessorKind::TupleIteratorItem, "TupleIteratorGetItemAccessor"},
    {AccessorKind::WeakrefCall, "WeakRefCallGuardAccessor"},
    {AccessorKind::GlobalWeakref, "GlobalWeakRefGuardAccessor"},
    {AccessorKind::FuncDefaults, "FuncDefaultsGuardAccessor"},
    {AccessorKind::FuncKwDefaults, "FuncKwDefaultsGuardAccessor"},
    {AccessorKind::FuncCode, "CodeGuardAccessor"},
    {AccessorKind::FuncClosure, "ClosureGuardAccessor"},
    {AccessorKind::CellContents, "CellContentsGuardAccessor"},
    {AccessorKind::Grad, "GradGuardAccessor"},
    {AccessorKind::TensorSize, "TensorSizeGuardAccessor"},
    {AccessorKind::TensorStride, "TensorStrideGuardAccessor"},
    {AccessorKind::TensorOffset, "TensorStorageOffsetGuardAccessor"},
    {AccessorKind::DictKey, "DictKeyGuardAccessor"},
    {AccessorKind::ClassDict, "TypeDictGuardAccessor"},
    {AccessorKind::Mro, "TypeMROGuardAccessor"},
    {AccessorKind::Identity, "IdentityGuardAccessor"},
};
constexpr size_t kAccessorCount = sizeof(kAccessors) / sizeof(kAccessors[0]);

PyTypeObject AccessorType = python::type_object("torch._C._dynamo.guards.GuardAccessor");
PyTypeObject* accessor_types[kAccessorCount];

PyObject* keep(PyRef& owned, PyObject* made) {
  owned = PyRef(made);
  return made;
}

// Held while the part is looked at: a condition may run code that takes it from where it was.
PyObject* hold(PyRef& owned, PyObject* borrowed) {
  owned = PyRef::borrow(borrowed);
  return borrowed;
}

PyObject* dict_item(PyObject* dict, PyObject* key) {
  return PyDict_Check(dict) ? PyDict_GetItemWithError(dict, key) : nullptr;
}

// Attributes that only the instance can have are read from its dictionary.
PyObject* attribute(const AccessorObject* accessor, PyObject* value, PyRef& owned) {
  PyTypeObject* type = Py_TYPE(value);
  if (C10_LIKELY(accessor->plain_type == type && accessor->plain_version == type->tp_version_tag)) {
    PyObject** dict = _PyObject_GetDictPtr(value);
    PyObject* found = dict && *dict ? PyDict_GetItemWithError(*dict, accessor->key) : nullptr;
    if (found) return hold(owned, found);
    PyErr_Clear();
  } else if (reads_instance_first(type) && PyUnicode_CheckExact(accessor->key) &&
             !_PyType_Lookup(type, accessor->key) && type->tp_version_tag != 0) {
    accessor->plain_type = type;
    accessor->plain_version = type->tp_version_tag;
  }
  return keep(owned, PyObject_GetAttr(value, accessor->key));
}

PyObject* item(const AccessorObject* accessor, PyObject* value, PyRef& owned) {
  if (PyDict_CheckExact(value)) return hold(owned, PyDict_GetItemWithError(value, accessor->key));
  return keep(owned, PyObject_GetItem(value, accessor->key));
}

PyObject* tuple_iterator_item(PyObject* iterator, Py_ssize_t index, PyRef& owned) {
  if (Py_TYPE(iterator) != &PyTupleIter_Type) return nullptr;
  PyRef state(PyObject_CallMethod(iterator, "__reduce__", nullptr)); // (iter, (tuple,), place)
  if (!state || !PyTuple_Check(state.get()) || PyTuple_GET_SIZE(state.get()) != 3) return nullptr;
  PyObject* args = PyTuple_GET_ITEM(state.get(), 1);
  PyObject* tuple = PyTuple_Check(args) ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (!tuple || !PyTuple_Check(tuple)) return nullptr;
  const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(state.get(), 2)) + index;
  if (at < 0 || at >= PyTuple_GET_SIZE(tuple)) return nullptr;
  return keep(owned, PyRef::borrow(PyTuple_GET_ITEM(tuple, at)).release());
}

PyObject* referent(PyObject* reference, PyRef& owned) {
  if (!reference || !PyWeakref_Check(reference)) return nullptr;
  return keep(owned, PyRef::borrow(PyWeakref_GET_OBJECT(reference)).release());
}

PyObject* dict_key(PyObject* dict, Py_ssize_t place) {
  if (!PyDict_Check(dict)) return nullptr;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &position, &key, &value); ++i)
    if (i == place) return key;
  return nullptr;
}

PyObject* function_part(const AccessorObject* accessor, PyObject* value) {
  if (!PyFunction_Check(value)) return nullptr;
  PyObject* part = accessor->kind == AccessorKind::FuncDefaults ? PyFunction_GET_DEFAULTS(value)
                   : accessor->kind == AccessorKind::FuncKwDefaults
                       ? PyFunction_GET_KW_DEFAULTS(value)
                   : accessor->kind == AccessorKind::FuncCode ? PyFunction_GET_CODE(value)
                                                              : PyFunction_GET_CLOSURE(value);
  return part ? part : Py_None;
}

PyObject* tensor_part(const AccessorObject* accessor, PyObject* value, PyRef& owned) {
  if (!python::is_tensor(value)) return nullptr;
  const c10::TensorImpl* impl = python::tensor_of(value).unsafeGetTensorImpl();
  if (!impl) return nullptr;
  if (accessor->kind == AccessorKind::TensorOffset)
    return keep(owned, PyLong_FromLongLong(impl->storage_offset()));
  const c10::IntArrayRef numbers =
      accessor->kind == AccessorKind::TensorSize ? impl->sizes() : impl->strides();
  if (accessor->index < 0 || static_cast<size_t>(accessor->index) >= numbers.size()) return nullptr;
  return keep(owned, PyLong_FromLongLong(numbers[static_cast<size_t>(accessor->index)]));
}

PyObject* class_part(const AccessorObject* accessor, PyObject* value) {
  if (!PyType_Check(value)) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(value);
  if (accessor->kind == AccessorKind::Mro) return type->tp_mro;
  return type->tp_dict ? PyDict_GetItemWithError(type->tp_dict, accessor->key) : nullptr;
}

PyObject* frame_local(const AccessorObject* accessor, const FrameView& view, PyRef& owned) {
  if (view.values) {
    const auto index = static_cast<size_t>(accessor->index);
    return index < view.count ? view.values[index] : nullptr;
  }
  if (!view.mapping) return nullptr;
  if (PyDict_Check(view.mapping)) return PyDict_GetItemWithError(view.mapping, accessor->key);
  return keep(owned, PyObject_GetItem(view.mapping, accessor->key));
}

} // namespace

PyObject* fetch(const AccessorObject* accessor, PyObject* value, const FrameView& view,
                PyRef& owned) {
  const Py_ssize_t index = accessor->index;
  PyObject* key = accessor->key;
  switch (accessor->kind) {
  case AccessorKind::FrameLocal:
    return frame_local(accessor, view, owned);
  case AccessorKind::Globals:
    return key;
  case AccessorKind::Identity:
    return value;
  case AccessorKind::GetAttr:
    return attribute(accessor, value, owned);
  case AccessorKind::GenericDict:
    return keep(owned, PyObject_GenericGetDict(value, nullptr));
  case AccessorKind::GetItem:
    return item(accessor, value, owned);
  case AccessorKind::DictItem:
    return hold(owned, dict_item(value, key));
  case AccessorKind::ListItem:
    return hold(owned, PyList_Check(value) && index >= 0 && index < PyList_GET_SIZE(value)
                           ? PyList_GET_ITEM(value, index)
                           : nullptr);
  case AccessorKind::TupleItem:
    return hold(owned, PyTuple_Check(value) && index >= 0 && index < PyTuple_GET_SIZE(value)
                           ? PyTuple_GET_ITEM(value, index)
                           : nullptr);
  case AccessorKind::Type:
    return reinterpret_cast<PyObject*>(Py_TYPE(value));
  case AccessorKind::Lambda:
    return keep(owned, PyObject_CallOneArg(key, value));
  case AccessorKind::TupleIteratorItem:
    return tuple_iterator_item(value, index, owned);
  case AccessorKind::WeakrefCall:
    return referent(value, owned);
  case AccessorKind::GlobalWeakref:
    return referent(dict_item(value, key), owned);
  case AccessorKind::FuncDefaults:
  case AccessorKind::FuncKwDefaults:
  case AccessorKind::FuncCode:
  case AccessorKind::FuncClosure:
    return hold(owned, function_part(accessor, value));
  case AccessorKind::CellContents:
    return hold(owned, PyCell_Check(value) ? PyCell_GET(value) : nullptr);
  case AccessorKind::Grad:
    return keep(owned, PyObject_GetAttrString(value, "grad"));
  case AccessorKind::TensorSize:
  case AccessorKind::TensorStride:
  case AccessorKind::TensorOffset:
    return tensor_part(accessor, value, owned);
  case AccessorKind::DictKey:
    return hold(owned, dict_key(value, index));
  case AccessorKind::ClassDict:
  case AccessorKind::Mro:
    return hold(owned, class_part(accessor, value));
  }
  return nullptr;
}

bool reads_instance_first(PyTypeObject* type) {
  return type->tp_getattro == PyObject_GenericGetAttr || python::has_module_lookup(type);
}

PyRef new_accessor(AccessorKind kind, PyObject* key, ManagerObject* child) {
  PyTypeObject* type = accessor_types[static_cast<size_t>(kind)];
  PyRef out = checked(type->tp_alloc(type, 0));
  AccessorObject* accessor = as_accessor(out.get());
  accessor->kind = kind;
  accessor->key = PyRef::borrow(key ? key : Py_None).release();
  if (kind == AccessorKind::FrameLocal) {
    // The key is (name, position).
    PyObject* name = nullptr;
    if (!PyArg_ParseTuple(key, "On", &name, &accessor->index)) throw python::python_error();
    Py_INCREF(name);
    Py_SETREF(accessor->key, name);
  } else if (key && PyLong_CheckExact(key)) {
    accessor->index = PyLong_AsSsize_t(key);
    if (accessor->index == -1 && PyErr_Occurred()) PyErr_Clear();
  }
  accessor->child = as_manager(PyRef::borrow(reinterpret_cast<PyObject*>(child)).release());
  return out;
}

bool same_access(const AccessorObject* accessor, AccessorKind kind, PyObject* key) {
  if (accessor->kind != kind) return false;
  if (kind == AccessorKind::FrameLocal) key = PyTuple_GET_ITEM(key, 0);
  if (!key) key = Py_None;
  if (accessor->key == key) return true;
  if (kind == AccessorKind::Globals || kind == AccessorKind::Lambda) return false;
  if (Py_TYPE(accessor->key) != Py_TYPE(key)) return false;
  const int equal = PyObject_RichCompareBool(accessor->key, key, Py_EQ);
  python::check_status(equal);
  return equal != 0;
}

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_accessor(self)->key);
  Py_VISIT(as_accessor(self)->child);
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(as_accessor(self)->key);
  Py_XDECREF(reinterpret_cast<PyObject*>(as_accessor(self)->child));
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* repr(PyObject* self) {
  const AccessorObject* accessor = as_accessor(self);
  return PyUnicode_FromFormat("%s(%R)", kAccessors[static_cast<size_t>(accessor->kind)].name,
                              accessor->kind == AccessorKind::Globals ? Py_None : accessor->key);
}
PyObject* get_manager(PyObject* self, PyObject*) {
  return PyRef::borrow(reinterpret_cast<PyObject*>(as_accessor(self)->child)).release();
}
PyMethodDef methods[] = {{"guard_manager", get_manager, METH_NOARGS, "The manager of the part."},
                         {nullptr, nullptr, 0, nullptr}};

bool add_accessor_type(PyObject* module, size_t index) {
  static std::string names[kAccessorCount];
  names[index] = std::string("torch._C._dynamo.guards.") + kAccessors[index].name;
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {0, nullptr}};
  PyType_Spec spec = {names[index].c_str(), sizeof(AccessorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  PyRef bases(Py_BuildValue("(O)", &AccessorType));
  PyRef type(bases ? PyType_FromSpecWithBases(&spec, bases.get()) : nullptr);
  if (!type) return false;
  accessor_types[index] = reinterpret_cast<PyTypeObject*>(PyRef(type).release());
  return python::add_object(module, kAccessors[index].name, type.release());
}

} // namespace

bool init_accessors(PyObject* module) {
  AccessorType.tp_basicsize = sizeof(AccessorObject);
  AccessorType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION;
  AccessorType.tp_dealloc = dealloc;
  AccessorType.tp_traverse = traverse;
  AccessorType.tp_repr = repr;
  AccessorType.tp_methods = methods;
  AccessorType.tp_doc = "The way from a value to one of its parts.";
  if (!python::add_type(module, &AccessorType)) return false;
  for (size_t i = 0; i < kAccessorCount; ++i)
    if (!add_accessor_type(module, i)) return false;
  return true;
}

} // namespace torch::dynamo
