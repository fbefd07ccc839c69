// Dispatch keys and key sets as Python values, the thread's included and excluded keys, and guards
// over them.
#include <torch/csrc/python/dispatch/dispatch.h>

#include <torch/csrc/python/dispatch/dispatch_keys.h>
#include <torch/csrc/python/dispatch/fake_tensor.h>
#include <torch/csrc/python/dispatch/operators.h>
#include <torch/csrc/python/dispatch/python_dispatch.h>
#include <torch/csrc/python/dispatch/python_dispatcher.h>
#include <torch/csrc/python/dispatch/python_kernels.h>
#include <torch/csrc/python/dispatch/quantized.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/enum_type.h>

#include <ATen/core/HandlerKeys.h>

#include <strings.h>

namespace torch::python {
namespace {

// ---- DispatchKey
// ---------------------------------------------------------------------------------------------
PyObject* key_type = nullptr;

// Note [Keys of absent devices]
// Programs name the keys of devices that have no backend here, in registrations and in sets. No
// tensor carries such a key, so it needs no bit: it is a name with a value above all keys, adds
// nothing to a set, and a kernel registered for it is not kept.
// clang-format off
#define CRESSET_FORALL_ABSENT_BACKENDS(X, prefix)                                                  \
  X(prefix##HIP) X(prefix##XLA) X(prefix##MPS) X(prefix##IPU) X(prefix##XPU) X(prefix##HPU)        \
  X(prefix##VE) X(prefix##Lazy) X(prefix##MTIA) X(prefix##MAIA) X(prefix##PrivateUse2)             \
  X(prefix##PrivateUse3)
#define CRESSET_FORALL_ABSENT_KEYS(X)                                                              \
  CRESSET_FORALL_ABSENT_BACKENDS(X, ) CRESSET_FORALL_ABSENT_BACKENDS(X, Autograd)                  \
  CRESSET_FORALL_ABSENT_BACKENDS(X, Sparse) CRESSET_FORALL_ABSENT_BACKENDS(X, SparseCsr)           \
  CRESSET_FORALL_ABSENT_BACKENDS(X, Quantized) CRESSET_FORALL_ABSENT_BACKENDS(X, NestedTensor)     \
  X(AutocastXPU) X(AutocastMPS) X(AutocastHPU) X(AutocastIPU) X(Vulkan) X(FPGA)                    \
  X(QuantizedMeta) X(QuantizedPrivateUse1) X(SparseCsrPrivateUse1) X(NestedTensorPrivateUse1)
// clang-format on
enum AbsentKey : long {
  kFirstAbsent = 127,
#define X(name) kAbsent##name,
  CRESSET_FORALL_ABSENT_KEYS(X)
#undef X
};

constexpr EnumMember kKeyMembers[] = {{"Undefined", 0},
#define X(name) {#name, static_cast<long>(c10::DispatchKey::name)},
                                      CRESSET_FORALL_DISPATCH_KEYS(X) CRESSET_FORALL_ALIAS_KEYS(X)
#undef X
#define X(name) {#name, kAbsent##name},
                                          CRESSET_FORALL_ABSENT_KEYS(X)
#undef X
};

// The value of the member of DispatchKey that `o` is or names; throws.
long key_value(PyObject* o) {
  if (PyUnicode_Check(o)) {
    const std::string_view name = utf8(o);
    for (const EnumMember& member : kKeyMembers)
      if (member.value > kFirstAbsent && name == member.name) return member.value;
    return static_cast<long>(c10::parseDispatchKey(name));
  }
  if (Py_TYPE(o) == reinterpret_cast<PyTypeObject*>(key_type)) return PyLong_AsLong(o);
  raise_type_error(c10::str("expected a DispatchKey or its name, got ", type_name(o)));
}

// ---- DispatchKeySet
// ------------------------------------------------------------------------------------------
PyTypeObject KeySetType = type_object("torch._C.DispatchKeySet");
struct PyKeySet {
  PyObject_HEAD c10::DispatchKeySet keys;
};

c10::DispatchKeySet& self_keys(PyObject* o) { return reinterpret_cast<PyKeySet*>(o)->keys; }

PyObject* keyset_new(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject* key = nullptr;
  if (!PyArg_ParseTuple(args, "O", &key)) return nullptr;
  return guarded([&] { return wrap(key_set_from(key)); });
}
PyObject* keyset_or(PyObject* a, PyObject* b) {
  return guarded([&] { return wrap(key_set_from(a) | key_set_from(b)); });
}
PyObject* keyset_and(PyObject* a, PyObject* b) {
  return guarded([&] { return wrap(key_set_from(a) & key_set_from(b)); });
}
PyObject* keyset_sub(PyObject* a, PyObject* b) {
  return guarded([&] { return wrap(key_set_from(a) - key_set_from(b)); });
}
int keyset_contains(PyObject* self, PyObject* key) {
  return guarded([&]() -> int { return self_keys(self).has(key_from(key)); });
}
PyObject* keyset_has(PyObject* self, PyObject* key) {
  const int found = keyset_contains(self, key);
  return found < 0 ? nullptr : new_bool(found != 0);
}
PyObject* keyset_add(PyObject* self, PyObject* key) {
  return guarded([&] { return wrap(self_keys(self).add(key_from(key))); });
}
PyObject* keyset_remove(PyObject* self, PyObject* key) {
  return guarded([&] { return wrap(self_keys(self).remove(key_from(key))); });
}
PyObject* keyset_highest(PyObject* self, PyObject*) { return wrap(self_keys(self).highest()); }
PyObject* keyset_raw(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(self_keys(self).raw());
}
PyObject* keyset_from_raw(PyObject*, PyObject* bits) {
  const unsigned long long raw = PyLong_AsUnsignedLongLong(bits);
  if (PyErr_Occurred()) return nullptr;
  const uint64_t valid = (uint64_t(1) << c10::kNumRuntimeKeys) - 2;
  return wrap(c10::DispatchKeySet::from_raw(raw & valid));
}
PyObject* keyset_list(PyObject* self, PyObject*) {
  PyRef out(PyList_New(0));
  for (int i = 1; out && i < c10::kNumRuntimeKeys; ++i) {
    const auto key = static_cast<c10::DispatchKey>(i);
    if (!self_keys(self).has(key)) continue;
    PyRef member(wrap(key));
    if (!member || PyList_Append(out.get(), member.get()) < 0) return nullptr;
  }
  return out.release();
}
PyObject* keyset_repr(PyObject* self) {
  return guarded([&] {
    std::string out = "DispatchKeySet(";
    bool comma = false;
    for (int i = 1; i < c10::kNumRuntimeKeys; ++i) {
      const auto key = static_cast<c10::DispatchKey>(i);
      if (!self_keys(self).has(key)) continue;
      if (comma) out += ", ";
      comma = true;
      out += c10::toString(key);
    }
    return wrap(out + ")");
  });
}
PyObject* keyset_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != &KeySetType || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return new_bool((self_keys(a) == self_keys(b)) == (op == Py_EQ));
}
Py_hash_t keyset_hash(PyObject* self) {
  const auto hash = static_cast<Py_hash_t>(self_keys(self).raw());
  return hash == -1 ? -2 : hash;
}

PyMethodDef keyset_methods[] = {{"has", keyset_has, METH_O, nullptr},
                                {"add", keyset_add, METH_O, nullptr},
                                {"remove", keyset_remove, METH_O, nullptr},
                                {"highestPriorityTypeId", keyset_highest, METH_NOARGS, nullptr},
                                {"raw_repr", keyset_raw, METH_NOARGS, nullptr},
                                {"from_raw_repr", keyset_from_raw, METH_O | METH_STATIC, nullptr},
                                {"keys", keyset_list, METH_NOARGS, "The keys, lowest first."},
                                {nullptr, nullptr, 0, nullptr}};
PyNumberMethods keyset_number;
PySequenceMethods keyset_sequence;

bool init_key_set(PyObject* module) {
  keyset_number.nb_or = keyset_or;
  keyset_number.nb_and = keyset_and;
  keyset_number.nb_subtract = keyset_sub;
  keyset_sequence.sq_contains = keyset_contains;
  KeySetType.tp_basicsize = sizeof(PyKeySet);
  KeySetType.tp_flags = Py_TPFLAGS_DEFAULT;
  KeySetType.tp_new = keyset_new;
  KeySetType.tp_repr = keyset_repr;
  KeySetType.tp_hash = keyset_hash;
  KeySetType.tp_richcompare = keyset_compare;
  KeySetType.tp_methods = keyset_methods;
  KeySetType.tp_as_number = &keyset_number;
  KeySetType.tp_as_sequence = &keyset_sequence;
  return add_type(module, &KeySetType);
}

// ---- guards
// ----------------------------------------------------------------------------------------------------
// Context managers that add keys to the thread's included or excluded set, and put back what was
// there.
struct PyGuard {
  PyObject_HEAD c10::DispatchKeySet include, exclude;
  c10::DispatchKeySet drop_included, drop_excluded; // taken out of what the thread has
  c10::LocalDispatchKeySet saved;
  bool active;
};

PyObject* guard_enter(PyObject* o, PyObject*) {
  auto* self = reinterpret_cast<PyGuard*>(o);
  if (self->active) {
    PyErr_SetString(PyExc_RuntimeError, "this guard is already active");
    return nullptr;
  }
  self->active = true;
  self->saved = c10::tls_dispatch_keys;
  c10::LocalDispatchKeySet& local = c10::tls_dispatch_keys;
  local.included = (local.included & ~self->drop_included.raw()) | self->include.raw();
  local.excluded = (local.excluded & ~self->drop_excluded.raw()) | self->exclude.raw();
  return new_none();
}
void guard_leave(PyGuard* self) {
  if (self->active) c10::tls_dispatch_keys = self->saved;
  self->active = false;
}
PyObject* guard_exit(PyObject* o, PyObject*) {
  guard_leave(reinterpret_cast<PyGuard*>(o));
  return new_none();
}
void guard_dealloc(PyObject* o) {
  guard_leave(reinterpret_cast<PyGuard*>(o));
  Py_TYPE(o)->tp_free(o);
}
PyMethodDef guard_methods[] = {{"__enter__", guard_enter, METH_NOARGS, nullptr},
                               {"__exit__", guard_exit, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

// How a guard's constructor turns its arguments into key sets.
using GuardKeys = void (*)(PyObject* args, PyGuard* guard);
void include_given(PyObject* args, PyGuard* g) {
  g->include = key_set_from(PyTuple_GET_ITEM(args, 0));
}
void exclude_given(PyObject* args, PyGuard* g) {
  g->exclude = key_set_from(PyTuple_GET_ITEM(args, 0));
}
void exclude_autograd(PyObject*, PyGuard* g) { g->exclude = c10::kAutogradKeys; }
void exclude_autograd_and_views(PyObject*, PyGuard* g) {
  g->exclude = c10::kAutogradKeys.add(c10::DispatchKey::ADInplaceOrView);
}
void exclude_functorch(PyObject*, PyGuard* g) {
  using c10::DispatchKey;
  for (const DispatchKey key :
       {DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper,
        DispatchKey::FunctionalizeMode, DispatchKey::FuncTorchDynamicLayerBackMode}) {
    g->exclude = g->exclude.add(key);
  }
}
// A FakeTensorMode is off too; fake tensors stay what they are.
void exclude_python(PyObject*, PyGuard* g) {
  g->exclude = at::kHandlerKeys;
  g->drop_included = c10::DispatchKeySet(c10::DispatchKey::Fake);
}
void force_given(PyObject* args, PyGuard* g) {
  g->include = key_set_from(PyTuple_GET_ITEM(args, 0));
  g->exclude = key_set_from(PyTuple_GET_ITEM(args, 1));
  g->drop_included = g->drop_excluded = c10::DispatchKeySet(c10::DispatchKeySet::FULL);
}
void include_python_dispatcher(PyObject*, PyGuard* g) {
  enable_python_dispatcher();
  g->include = c10::DispatchKeySet(c10::DispatchKey::PythonDispatcher);
}
void drop_python_dispatcher(PyObject*, PyGuard* g) {
  g->drop_included = c10::DispatchKeySet(c10::DispatchKey::PythonDispatcher);
}
void include_pre_dispatch(PyObject*, PyGuard* g) {
  g->include = c10::DispatchKeySet(c10::DispatchKey::PreDispatch);
}

template <GuardKeys kKeys, int kArgs>
PyObject* guard_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) != kArgs) {
      raise_type_error(c10::str(type->tp_name, "() takes ", kArgs, " arguments"));
    }
    PyRef self = checked(type->tp_alloc(type, 0));
    kKeys(args, reinterpret_cast<PyGuard*>(self.get()));
    return self.release();
  });
}

template <GuardKeys kKeys, int kArgs> bool add_guard(PyObject* module, PyTypeObject& type) {
  type.tp_basicsize = sizeof(PyGuard);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_new = guard_new<kKeys, kArgs>;
  type.tp_dealloc = guard_dealloc;
  type.tp_methods = guard_methods;
  return add_type(module, &type);
}

PyTypeObject IncludeGuard = type_object("torch._C._IncludeDispatchKeyGuard");
PyTypeObject ExcludeGuard = type_object("torch._C._ExcludeDispatchKeyGuard");
PyTypeObject BelowAutograd = type_object("torch._C._AutoDispatchBelowAutograd");
PyTypeObject BelowViews = type_object("torch._C._AutoDispatchBelowADInplaceOrView");
PyTypeObject DisableFuncTorch = type_object("torch._C._DisableFuncTorch");
PyTypeObject DisableDispatch = type_object("torch._C._DisableTorchDispatch");
PyTypeObject ForceKeys = type_object("torch._C._ForceDispatchKeyGuard");
PyTypeObject EnablePythonDispatcher = type_object("torch._C._EnablePythonDispatcher");
PyTypeObject DisablePythonDispatcher = type_object("torch._C._DisablePythonDispatcher");
PyTypeObject EnablePreDispatch = type_object("torch._C._EnablePreDispatch");

// ---- functions
// -------------------------------------------------------------------------------------------------
PyObject* py_local_include(PyObject*, PyObject*) {
  return wrap(c10::DispatchKeySet::from_raw(c10::tls_dispatch_keys.included));
}
PyObject* py_local_exclude(PyObject*, PyObject*) {
  return wrap(c10::DispatchKeySet::from_raw(c10::tls_dispatch_keys.excluded));
}
PyObject* py_is_included(PyObject*, PyObject* key) {
  return guarded([&] {
    const auto set = c10::DispatchKeySet::from_raw(c10::tls_dispatch_keys.included);
    return new_bool(set.has(key_from(key)));
  });
}
PyObject* py_is_excluded(PyObject*, PyObject* key) {
  return guarded([&] {
    const auto set = c10::DispatchKeySet::from_raw(c10::tls_dispatch_keys.excluded);
    return new_bool(set.has(key_from(key)));
  });
}
template <uint64_t c10::LocalDispatchKeySet::*kSet>
PyObject* py_set_local(PyObject*, PyObject* args) {
  PyObject* key = nullptr;
  int on = 0;
  if (!PyArg_ParseTuple(args, "Op", &key, &on)) return nullptr;
  return guarded([&] {
    const uint64_t bits = c10::DispatchKeySet(key_from(key)).raw();
    uint64_t& set = c10::tls_dispatch_keys.*kSet;
    set = on ? set | bits : set & ~bits;
    return new_none();
  });
}
PyObject* py_keys_of(PyObject*, PyObject* tensor) {
  return guarded([&] {
    if (!is_tensor(tensor)) raise_type_error("expected a tensor");
    return wrap(tensor_of(tensor).key_set());
  });
}
// _set_conj(tensor, on), _set_neg: the lazy bits, for code that makes tensors like others.
template <void (c10::TensorImpl::*kSet)(bool)> PyObject* py_set_bit(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  int on = 0;
  if (!PyArg_ParseTuple(args, "Op", &tensor, &on)) return nullptr;
  return guarded([&] {
    if (!is_tensor(tensor)) raise_type_error("expected a tensor");
    c10::TensorImpl* impl = tensor_of(tensor).unsafeGetTensorImpl();
    TORCH_CHECK(!on || kSet != &c10::TensorImpl::set_conj || tensor_of(tensor).is_complex(),
                "only a complex tensor can be a conjugate view, got ", tensor_of(tensor));
    (impl->*kSet)(on != 0);
    return new_none();
  });
}
PyObject* py_key_name(PyObject*, PyObject* key) {
  return guarded([&] {
    const long value = key_value(key);
    for (const EnumMember& member : kKeyMembers)
      if (member.value == value) return PyUnicode_FromString(member.name);
    return PyUnicode_FromString("Unknown");
  });
}
PyObject* py_parse_key(PyObject*, PyObject* name) {
  return guarded([&] { return enum_member(key_type, key_value(name)); });
}
PyObject* py_is_alias(PyObject*, PyObject* key) {
  return guarded([&] { return new_bool(c10::isAliasDispatchKey(key_from(key))); });
}
PyObject* py_key_for_device(PyObject*, PyObject* device) {
  return guarded([&] {
    c10::Device parsed;
    if (!device_from_object(device, &parsed)) raise_type_error("expected a device");
    const c10::DispatchKey key = c10::backend_key(parsed.type());
    if (key == c10::DispatchKey::Undefined) {
      const std::string kind = c10::Device(parsed.type()).str();
      for (const EnumMember& member : kKeyMembers)
        if (member.value > kFirstAbsent && strcasecmp(member.name, kind.c_str()) == 0)
          return PyUnicode_FromString(member.name);
    }
    return PyUnicode_FromString(c10::toString(key));
  });
}
// _dispatch_key_set(tensor): the keys that concern a tensor, as text. Autograd and autocast keys
// are named whether or not the tensor carries them now, and a fake tensor has those of its device.
PyObject* py_key_set_text(PyObject*, PyObject* tensor) {
  return guarded([&] {
    if (!is_tensor(tensor)) raise_type_error("_dispatch_key_set expects a tensor");
    const at::Tensor& t = tensor_of(tensor);
    c10::DispatchKeySet keys = t.key_set();
    if (keys.has(c10::DispatchKey::Fake)) {
      keys = keys - c10::DispatchKeySet{c10::DispatchKey::Fake, c10::DispatchKey::Meta};
      keys = keys.add(c10::backend_key(t.device().type())).add(c10::DispatchKey::Python);
    }
    keys = keys.remove(c10::DispatchKey::InferenceCheck);
    if (!t.is_inference()) keys = keys.add(c10::autograd_key(t.device().type()));
    keys = keys.add(c10::autocast_key(t.device().type()));
    PyRef set = checked(wrap(keys));
    return PyObject_Str(set.get());
  });
}
PyObject* py_storage_id(PyObject*, PyObject* tensor) {
  return guarded([&] {
    if (!is_tensor(tensor)) raise_type_error("_storage_id expects a tensor");
    return PyLong_FromVoidPtr(tensor_of(tensor).unsafeGetTensorImpl()->storage().get());
  });
}
PyObject* py_full(PyObject*, PyObject*) {
  const uint64_t valid = (uint64_t(1) << c10::kNumRuntimeKeys) - 2;
  return wrap(c10::DispatchKeySet::from_raw(valid));
}
PyObject* py_full_after(PyObject*, PyObject* key) {
  return guarded([&] { return wrap(c10::DispatchKeySet::below(key_from(key))); });
}

using Local = c10::LocalDispatchKeySet;
PyMethodDef functions[] = {
    {"_dispatch_tls_local_include_set", py_local_include, METH_NOARGS, nullptr},
    {"_dispatch_tls_local_exclude_set", py_local_exclude, METH_NOARGS, nullptr},
    {"_dispatch_tls_is_dispatch_key_included", py_is_included, METH_O, nullptr},
    {"_dispatch_tls_is_dispatch_key_excluded", py_is_excluded, METH_O, nullptr},
    {"_dispatch_tls_set_dispatch_key_included", py_set_local<&Local::included>, METH_VARARGS,
     nullptr},
    {"_dispatch_tls_set_dispatch_key_excluded", py_set_local<&Local::excluded>, METH_VARARGS,
     nullptr},
    {"_dispatch_keys", py_keys_of, METH_O, nullptr},
    {"_set_conj", py_set_bit<&c10::TensorImpl::set_conj>, METH_VARARGS, nullptr},
    {"_set_neg", py_set_bit<&c10::TensorImpl::set_neg>, METH_VARARGS, nullptr},
    {"_dispatch_key_name", py_key_name, METH_O, nullptr},
    {"_dispatch_key_parse", py_parse_key, METH_O, nullptr},
    {"_parse_dispatch_key", py_parse_key, METH_O, nullptr},
    {"_dispatch_is_alias_key", py_is_alias, METH_O, nullptr},
    {"_dispatch_key_for_device", py_key_for_device, METH_O, nullptr},
    {"_dispatch_key_set", py_key_set_text, METH_O, nullptr},
    {"_storage_id", py_storage_id, METH_O, nullptr},
    {"_dispatch_keyset_full", py_full, METH_NOARGS, nullptr},
    {"_dispatch_keyset_full_after", py_full_after, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool is_absent_key(PyObject* o) { return key_value(o) > kFirstAbsent; }

c10::DispatchKey key_from(PyObject* o) {
  const long value = key_value(o);
  return value > kFirstAbsent ? c10::DispatchKey::Undefined : static_cast<c10::DispatchKey>(value);
}

c10::DispatchKeySet key_set_from(PyObject* o) {
  if (Py_TYPE(o) == &KeySetType) return self_keys(o);
  const c10::DispatchKey key = key_from(o);
  TORCH_CHECK(!c10::isAliasDispatchKey(key), "the key ", key, " stands for several keys");
  return c10::DispatchKeySet(key);
}

PyObject* wrap(c10::DispatchKey key) { return enum_member(key_type, static_cast<long>(key)); }

PyObject* wrap(c10::DispatchKeySet keys) {
  auto* self = PyObject_New(PyKeySet, &KeySetType);
  if (!self) return nullptr;
  self->keys = keys;
  return reinterpret_cast<PyObject*>(self);
}

bool init_dispatch(PyObject* module) {
  key_type = add_enum(module, "torch._C.DispatchKey", kKeyMembers,
                      sizeof kKeyMembers / sizeof kKeyMembers[0]);
  return key_type && init_key_set(module) && add_guard<include_given, 1>(module, IncludeGuard) &&
         add_guard<exclude_given, 1>(module, ExcludeGuard) &&
         add_guard<exclude_autograd, 0>(module, BelowAutograd) &&
         add_guard<exclude_autograd_and_views, 0>(module, BelowViews) &&
         add_guard<exclude_python, 0>(module, DisableDispatch) &&
         add_guard<exclude_functorch, 0>(module, DisableFuncTorch) &&
         add_guard<force_given, 2>(module, ForceKeys) &&
         add_guard<include_python_dispatcher, 0>(module, EnablePythonDispatcher) &&
         add_guard<drop_python_dispatcher, 0>(module, DisablePythonDispatcher) &&
         add_guard<include_pre_dispatch, 0>(module, EnablePreDispatch) &&
         PyModule_AddFunctions(module, functions) == 0 && init_operators(module) &&
         init_python_kernels(module) && init_python_dispatch(module) && init_fake_tensor(module) &&
         init_quantized(module);
}

} // namespace torch::python
