// Life and death of tensor objects: allocation from a free list, the ownership flip of Note [One
// object per tensor] in tensor.h, garbage collection, and the type objects themselves.
#include <torch/csrc/python/tensor/tensor.h>

#include <torch/csrc/python/autograd/engine.h>
#include <torch/csrc/python/autograd/hooks.h>
#include <torch/csrc/python/autograd/node.h>
#include <torch/csrc/python/dispatch/fake_tensor.h>
#include <torch/csrc/python/dispatch/subclass.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/tensor/construct.h>
#include <torch/csrc/python/tensor/indexing.h>
#include <torch/csrc/python/tensor/tensor_apply.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <ATen/core/HandlerKeys.h>

#include <structmember.h>

#include <cstddef>
#include <new>

namespace torch::python {

PyTypeObject TensorMetaType = type_object("torch._C._TensorMeta");
PyTypeObject TensorBaseType = type_object("torch._C.TensorBase");
PyTypeObject* TensorClass = nullptr;
PyTypeObject* ParameterClass = nullptr;

namespace {

PyTensor* as_tensor_object(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

// ---- free list ----------------------------------------------------------------------------------
// Dead objects of exactly torch.Tensor, linked through `dict`. A result object is made for nearly
// every operator call; reusing one saves the allocator and the zeroing.
constexpr int kMaxFree = 128;
PyTensor* free_objects = nullptr;
int free_count = 0;

PyTensor* allocate(PyTypeObject* type) {
  if (C10_LIKELY(type == TensorClass && free_objects != nullptr)) {
    PyTensor* self = free_objects;
    free_objects = reinterpret_cast<PyTensor*>(self->dict);
    --free_count;
    PyObject_Init(reinterpret_cast<PyObject*>(self), type);
    self->dict = nullptr;
    return self;
  }
  // tp_alloc zeroes and tracks; tracking is done by the caller once the object is whole.
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) throw python_error();
  PyObject_GC_UnTrack(self);
  return as_tensor_object(self);
}

void release_memory(PyTensor* self, PyTypeObject* type) {
  if (type == TensorClass && free_count < kMaxFree) {
    self->dict = reinterpret_cast<PyObject*>(free_objects);
    free_objects = self;
    ++free_count;
  } else {
    type->tp_free(self);
  }
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);
}

// ---- ownership ----------------------------------------------------------------------------------
// Whether losing the object could be noticed by whoever gets the tensor from C++ later.
bool worth_keeping(PyTensor* self) {
  return self->dict || self->weakrefs || self->backward_hooks || self->post_accumulate_grad_hooks ||
         !is_plain_tensor(reinterpret_cast<PyObject*>(self));
}

// C++ still holds the tensor of an object whose last Python reference went: revive the object and
// let the tensor own it.
bool hand_to_cpp(PyTensor* self) {
  c10::TensorImpl* impl = self->tensor.unsafeGetTensorImpl();
  if (!impl || impl->pyobj != self || impl->use_count() <= 1 || !worth_keeping(self)) return false;
  auto* py = reinterpret_cast<PyObject*>(self);
  Py_SET_REFCNT(py, 1);
  impl->pyobj_owned = true;
  // The handle stays in place without a count of its own.
  impl->decref();
  return true;
}

// The tensor dies while it owns `pyobj`. References can exist only where weak references were
// followed; those get a tensor of their own with the same contents.
void release_owned_object(void* pyobj) {
  if (!python_exists()) return;
  WithGil gil;
  auto* self = static_cast<PyTensor*>(pyobj);
  c10::TensorImpl* dying = self->tensor.getIntrusivePtr().get();
  auto unowned = self->tensor.take_impl();
  unowned.release();
  auto* py = reinterpret_cast<PyObject*>(self);
  if (Py_REFCNT(py) > 1) {
    try {
      auto copy = dying->shallow_copy();
      copy->pyobj = self;
      self->tensor = at::Tensor(std::move(copy));
    } catch (...) {
      PyErr_WriteUnraisable(py);
    }
  }
  Py_DECREF(py);
}

PyObject* existing_object(c10::TensorImpl* impl) {
  auto* py = static_cast<PyObject*>(impl->pyobj);
  if (C10_UNLIKELY(impl->pyobj_owned)) {
    impl->pyobj_owned = false;
    impl->incref(); // for the handle in the object; C++'s reference to the object goes to the
                    // caller
  } else {
    Py_INCREF(py);
  }
  return py;
}

// ---- destruction --------------------------------------------------------------------------------
void clear_slots(PyObject* self, PyTypeObject* type) {
  for (; type && type != &TensorBaseType; type = type->tp_base) {
    PyMemberDef* member = type->tp_members;
    for (Py_ssize_t i = 0, n = Py_SIZE(type); member && i < n; ++i, ++member) {
      if (member->type != T_OBJECT_EX || (member->flags & READONLY)) continue;
      auto** slot = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + member->offset);
      // The last reference goes with a tuple, whose end CPython keeps from nesting too deep: a slot
      // may hold the first of a long chain of tensors.
      const PyRef last(*slot && PyObject_IS_GC(*slot) ? PyTuple_Pack(1, *slot) : nullptr);
      Py_CLEAR(*slot);
    }
  }
}

int tensor_clear(PyObject* py) {
  PyTensor* self = as_tensor_object(py);
  // While C++ holds the tensor too the object may come back; its attributes must survive.
  if (self->tensor.defined() && self->tensor.use_count() > 1) return 0;
  clear_tensor_hooks(self->tensor);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->backward_hooks);
  Py_CLEAR(self->post_accumulate_grad_hooks);
  return 0;
}

int tensor_traverse(PyObject* py, visitproc visit, void* arg) {
  PyTensor* self = as_tensor_object(py);
  if (self->tensor.defined() && self->tensor.use_count() > 1) return 0;
  Py_VISIT(self->dict);
  Py_VISIT(self->backward_hooks);
  Py_VISIT(self->post_accumulate_grad_hooks);
  if (const int status = traverse_tensor_hooks(self->tensor, visit, arg)) return status;
  return traverse_history(self->tensor, visit, arg);
}

void tensor_dealloc(PyObject* py) {
  PyTensor* self = as_tensor_object(py);
  PyTypeObject* type = Py_TYPE(py);
  if (hand_to_cpp(self)) return;
  if (C10_UNLIKELY(type->tp_finalize != nullptr) && PyObject_CallFinalizerFromDealloc(py) < 0) {
    return;
  }
  PyObject_GC_UnTrack(py);
  if (C10_UNLIKELY(self->weakrefs != nullptr)) PyObject_ClearWeakRefs(py);
  if (C10_UNLIKELY(type != TensorClass)) clear_slots(py, type);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->backward_hooks);
  Py_CLEAR(self->post_accumulate_grad_hooks);
  if (c10::TensorImpl* impl = self->tensor.unsafeGetTensorImpl()) {
    if (impl->pyobj == self) impl->pyobj = nullptr;
  }
  self->tensor.~Tensor();
  release_memory(self, type);
}

// ---- types --------------------------------------------------------------------------------------
// A class that defines __torch_dispatch__ and leaves __torch_function__ as torch.Tensor has it
// wants its operators one level below: the default __torch_function__ is switched off for it.
bool settle_overrides(PyTypeObject* type) {
  if (!PyDict_GetItemString(type->tp_dict, "__torch_dispatch__")) return true;
  auto function_of = [](PyTypeObject* owner) {
    PyRef method(PyObject_GetAttrString(reinterpret_cast<PyObject*>(owner), "__torch_function__"));
    PyRef function(method ? PyObject_GetAttrString(method.get(), "__func__") : nullptr);
    if (!function) PyErr_Clear();
    return function;
  };
  const PyRef mine = function_of(type), inherited = function_of(TensorClass);
  if (!mine || mine.get() != inherited.get()) return true;
  return PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "__torch_function__",
                                disabled_torch_function) == 0;
}

// Every Python subclass gets this file's tp_dealloc: CPython's own would clear attributes before
// the tensor had its chance to be handed to C++.
PyObject* meta_new(PyTypeObject* meta, PyObject* args, PyObject* kwargs) {
  PyRef made(PyType_Type.tp_new(meta, args, kwargs));
  if (!made) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(made.get());
  type->tp_dealloc = tensor_dealloc;
  if (TensorClass != &TensorBaseType && !settle_overrides(type)) return nullptr;
  return made.release();
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (type == &TensorBaseType) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Cannot directly construct TensorBase; subclass it and then construct that");
    return nullptr;
  }
  return guarded([&] { return legacy_tensor_new(type, args, kwargs); });
}

// Tensors hash by identity, and to the number id() gives: programs key tables with either.
Py_hash_t tensor_hash(PyObject* self) {
  PyRef id(PyLong_FromVoidPtr(self));
  return id ? PyObject_Hash(id.get()) : -1;
}

PyMappingMethods as_mapping;
PyNumberMethods as_number;

Py_ssize_t tensor_length(PyObject* self) {
  PyObject* result = nullptr;
  if (C10_UNLIKELY(!is_plain_tensor(self) || function_mode_active()) &&
      slot_override("__len__", &self, 1, &result)) {
    const Py_ssize_t length = result ? PyNumber_AsSsize_t(result, PyExc_OverflowError) : -1;
    Py_XDECREF(result);
    return length;
  }
  return guarded([&]() -> Py_ssize_t {
    const at::Tensor& tensor = tensor_of(self);
    if (tensor.dim() == 0) raise_type_error("len() of a 0-d tensor");
    return static_cast<Py_ssize_t>(tensor.sizes()[0]);
  });
}

PyObject* register_class(PyObject* cls, PyTypeObject*& slot) {
  if (!PyType_Check(cls) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorBaseType)) {
    PyErr_SetString(PyExc_TypeError, "expected a subclass of torch._C.TensorBase");
    return nullptr;
  }
  Py_INCREF(cls);
  slot = reinterpret_cast<PyTypeObject*>(cls);
  return new_none();
}

PyObject* set_tensor_class(PyObject*, PyObject* cls) {
  // Dead objects of the former class must not come back under the new one.
  free_objects = nullptr;
  free_count = 0;
  return register_class(cls, TensorClass);
}
PyObject* set_parameter_class(PyObject*, PyObject* cls) {
  return register_class(cls, ParameterClass);
}

PyMethodDef module_functions[] = {
    {"_set_tensor_class", set_tensor_class, METH_O,
     "Registers torch.Tensor, the class of results."},
    {"_set_parameter_class", set_parameter_class, METH_O, "Registers torch.nn.Parameter."},
    {nullptr, nullptr, 0, nullptr}};

void fill_base_type() {
  PyTypeObject& type = TensorBaseType;
  Py_SET_TYPE(&type, &TensorMetaType);
  fill_number_slots(&as_number);
  as_mapping.mp_length = tensor_length;
  as_mapping.mp_subscript = tensor_getitem;
  as_mapping.mp_ass_subscript = tensor_setitem;
  type.tp_basicsize = sizeof(PyTensor);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  type.tp_dealloc = tensor_dealloc;
  type.tp_traverse = tensor_traverse;
  type.tp_clear = tensor_clear;
  type.tp_dictoffset = offsetof(PyTensor, dict);
  type.tp_weaklistoffset = offsetof(PyTensor, weakrefs);
  type.tp_new = tensor_new;
  type.tp_as_mapping = &as_mapping;
  type.tp_as_number = &as_number;
  type.tp_richcompare = tensor_richcompare;
  type.tp_hash = tensor_hash;
  type.tp_getset = tensor_properties;
  type.tp_methods = tensor_methods;
}

} // namespace

PyObject* new_tensor_object(PyTypeObject* type, at::Tensor tensor) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (C10_UNLIKELY(impl->pyobj != nullptr)) {
    raise(PyExc_RuntimeError, "this tensor already has a Python object");
  }
  if (C10_UNLIKELY(type != TensorClass) && (type_traits(type) & kDispatches)) {
    impl->set_key_set(impl->key_set() | at::kHandlerKeys);
    at::show_definitions();
  }
  PyTensor* self = allocate(type);
  new (&self->tensor) at::Tensor(std::move(tensor));
  impl->pyobj = self;
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap(at::Tensor&& tensor) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (C10_UNLIKELY(impl == nullptr)) return new_none();
  if (impl->pyobj != nullptr) return existing_object(impl);
  const bool fake = C10_UNLIKELY(impl->key_set().has(c10::DispatchKey::Fake)) && FakeTensorClass;
  PyTypeObject* type = fake ? FakeTensorClass : TensorClass;
  return guarded([&] { return new_tensor_object(type, std::move(tensor)); });
}

PyObject* wrap(const at::Tensor& tensor) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (C10_LIKELY(impl != nullptr && impl->pyobj != nullptr)) return existing_object(impl);
  return wrap(at::Tensor(tensor));
}

bool add_tensor_methods(PyMethodDef* methods) {
  for (PyMethodDef* def = methods; def->ml_name; ++def) {
    PyRef descriptor((def->ml_flags & METH_STATIC) ? PyCFunction_New(def, nullptr)
                                                   : new_method(&TensorBaseType, def));
    if (!descriptor ||
        PyDict_SetItemString(TensorBaseType.tp_dict, def->ml_name, descriptor.get()) < 0) {
      return false;
    }
  }
  PyType_Modified(&TensorBaseType);
  return true;
}

bool init_tensor(PyObject* module) {
  TensorMetaType.tp_base = &PyType_Type;
  TensorMetaType.tp_basicsize = PyType_Type.tp_basicsize;
  TensorMetaType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  TensorMetaType.tp_new = meta_new;
  if (!add_type(module, &TensorMetaType)) return false;
  fill_base_type();
  if (!add_type(module, &TensorBaseType)) return false;
  if (!add_tensor_methods(tensor_conversion_methods) || !add_tensor_methods(subclass_methods) ||
      !add_tensor_methods(tensor_apply_methods) || !add_tensor_methods(tensor_autograd_methods))
    return false;
  // Python 2's names, which programs still use.
  static constexpr const char* kOldNames[][2] = {{"__div__", "__truediv__"},
                                                 {"__rdiv__", "__rtruediv__"},
                                                 {"__idiv__", "__itruediv__"},
                                                 {"__long__", "__int__"}};
  PyObject* dict = TensorBaseType.tp_dict;
  for (const auto& names : kOldNames) {
    PyObject* value = PyDict_GetItemString(dict, names[1]);
    if (!value || PyDict_SetItemString(dict, names[0], value) < 0) return false;
  }
  auto* base = reinterpret_cast<PyObject*>(&TensorBaseType);
  Py_INCREF(base);
  if (!add_object(module, "_TensorBase", base)) return false;
  // Until the package defines torch.Tensor results are of the base class.
  TensorClass = &TensorBaseType;
  c10::TensorImpl::release_pyobj = release_owned_object;
  return PyModule_AddFunctions(module, module_functions) == 0;
}

} // namespace torch::python
