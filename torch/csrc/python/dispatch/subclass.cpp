// Objects of Python subclasses of torch.Tensor. A wrapper subclass has geometry but no memory: its
// operators are meant to be caught by __torch_dispatch__.
#include <torch/csrc/python/dispatch/subclass.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/autograd/bridge.h>
#include <torch/csrc/python/dispatch/custom_geometry.h>
#include <torch/csrc/python/dispatch/torch_function.h>

#include <ATen/core/HandlerKeys.h>
#include <ATen/ops/alias.h>
#include <c10/core/SymbolicGeometry.h>
#include <c10/util/SafeArithmetic.h>

namespace torch::python {
namespace {

PyTypeObject* tensor_class_of(PyObject* cls) {
  if (!PyType_Check(cls)) {
    raise_type_error(c10::str("cls must be a type (got ", type_name(cls), ")"));
  }
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!PyType_IsSubtype(type, &TensorBaseType)) {
    raise_type_error("Creating a Tensor subclass from a class that does not inherit from Tensor is "
                     "not possible. Make sure your class inherits from Tensor.");
  }
  return type;
}

// The same data and version counter under a new identity, without gradient history.
at::Tensor detached(const at::Tensor& data) {
  auto impl = data.unsafeGetTensorImpl()->shallow_copy();
  impl->share_version_of(*data.unsafeGetTensorImpl());
  impl->set_key_set(impl->key_set() - at::kHandlerKeys);
  return at::Tensor(std::move(impl));
}

// ---- _make_subclass -----------------------------------------------------------------------------
constexpr Param kMakeParams[] = {
    {"cls", P::Object, 0, 0, nullptr},
    {"data", P::Tensor, 0, 0, nullptr},
    {"require_grad", P::Bool, kHasDefault, 0, "False"},
    {"dispatch_sizes_strides_policy", P::Str, kHasDefault | kKwOnly | kOptional, 0, "None"},
    {"dispatch_device", P::Bool, kHasDefault | kKwOnly, 0, "False"},
    {"dispatch_layout", P::Bool, kHasDefault | kKwOnly, 0, "False"}};

// Which questions about the new object its class answers.
uint8_t custom_flags(ArgValues& a, int first) {
  const std::string policy = a.present(first) ? std::string(a.string(first)) : std::string();
  return custom_geometry_flags(a.present(first) ? policy.c_str() : nullptr,
                               a.given(first + 1) && a.boolean(first + 1),
                               a.given(first + 2) && a.boolean(first + 2));
}
PyObject* with_custom(PyObject* object, uint8_t flags) {
  set_custom_geometry(object, flags);
  return object;
}

void require_grad(at::Tensor& made) {
  TORCH_CHECK(made.is_floating_point() || made.is_complex(),
              "Only Tensors of floating point and complex dtype can require gradients");
  set_requires_grad(made, true);
}

PyObject* invoke_make_subclass(ArgValues& a) {
  PyTypeObject* type = tensor_class_of(a.object(0));
  const uint8_t custom = custom_flags(a, 3);
  if (custom != 0 && !(type_traits(type) & kDispatches)) {
    raise_type_error(c10::str(type->tp_name, " must define __torch_dispatch__"));
  }
  at::Tensor data = detached(a.tensor(1));
  if (a.given(2) && a.boolean(2)) require_grad(data);
  return with_custom(new_tensor_object(type, std::move(data)), custom);
}
const Signature kMakeSignature[] = {{kMakeParams, 6, 3, kNoOverride, invoke_make_subclass,
                                     "_make_subclass(cls, Tensor data, bool require_grad)"}};
const Function kMakeSubclass = {"_make_subclass", "torch.Tensor", kMakeSignature, 1};

// ---- _make_wrapper_subclass ---------------------------------------------------------------------
constexpr Param kWrapperParams[] = {
    {"cls", P::Object, 0, 0, nullptr},
    {"size", P::SymIntList, 0, 0, nullptr},
    {"strides", P::SymIntList, kHasDefault | kOptional, 0, "None"},
    {"storage_offset", P::SymInt, kHasDefault | kOptional, 0, "None"},
    {"memory_format", P::MemoryFormat, kHasDefault | kOptional, 0, "None"},
    {"dtype", P::ScalarType, kHasDefault | kOptional, 0, "None"},
    {"layout", P::Layout, kHasDefault | kOptional, 0, "torch.strided"},
    {"device", P::Device, kHasDefault | kOptional, 0, "None"},
    {"pin_memory", P::Bool, kHasDefault, 0, "False"},
    {"requires_grad", P::Bool, kHasDefault, 0, "False"},
    {"dispatch_sizes_strides_policy", P::Str, kHasDefault | kOptional, 0, "None"},
    {"dispatch_device", P::Bool, kHasDefault, 0, "False"},
    {"dispatch_layout", P::Bool, kHasDefault, 0, "False"},
    {"_extra_dispatch_keys", P::Object, kHasDefault | kOptional, 0, "None"},
    {"storage_size", P::SymInt, kHasDefault | kOptional, 0, "None"}};

// Contiguous strides, unless they are given.
void set_symbolic_geometry(ArgValues& a, c10::TensorImpl* impl, c10::SymIntArrayRef sizes) {
  std::vector<c10::SymInt> strides = c10::sym_contiguous_strides(sizes);
  if (a.present(2)) {
    const c10::SymIntArrayRef given = a.symint_list(2);
    TORCH_CHECK(given.size() == sizes.size(), "size and strides must have the same length, got ",
                sizes.size(), " and ", given.size());
    strides.assign(given.begin(), given.end());
  }
  impl->set_symbolic_geometry(sizes, strides, a.present(3) ? a.symint(3) : c10::SymInt(0));
}

void set_wrapper_geometry(ArgValues& a, c10::TensorImpl* impl) {
  const c10::SymIntArrayRef symbolic = a.symint_list(1);
  const bool any = c10::has_symbolic(symbolic) ||
                   (a.present(2) && c10::has_symbolic(a.symint_list(2))) ||
                   (a.present(3) && a.symint(3).is_symbolic());
  if (any) return set_symbolic_geometry(a, impl, symbolic);
  const c10::IntArrayRef sizes = a.int_list(1);
  for (int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
  }
  impl->set_contiguous(sizes); // checks the number of elements for overflow
  if (a.present(2)) {
    const c10::IntArrayRef strides = a.int_list(2);
    TORCH_CHECK(strides.size() == sizes.size(), "size and strides must have the same length, got ",
                sizes.size(), " and ", strides.size());
    impl->set_geometry(sizes, strides, a.present(3) ? a.integer(3) : 0);
  } else if (a.present(3)) {
    impl->set_storage_offset(a.integer(3));
  }
}

// A wrapper has a storage that other tensors can share and compare, but no memory behind it:
// whoever wants to read it gets an error.
void give_nominal_storage(ArgValues& a, c10::TensorImpl* impl) {
  if (impl->has_symbolic_sizes()) {
    auto storage = c10::make_intrusive<c10::StorageImpl>(
        size_t(0), c10::DataPtr(nullptr, impl->device()), nullptr, false);
    storage->set_sym_nbytes(
        a.present(14) ? a.symint(14)
                      : c10::sym_storage_bytes(impl->sym_sizes(), impl->sym_strides(),
                                               impl->itemsize(), impl->sym_storage_offset()));
    impl->set_storage(std::move(storage));
    return;
  }
  const int64_t bytes = a.present(14)
                            ? a.integer(14)
                            : c10::checked_storage_bytes(impl->sizes(), impl->strides(),
                                                         impl->itemsize(), impl->storage_offset());
  TORCH_CHECK(bytes >= 0, "the storage of a tensor cannot have ", bytes, " bytes");
  impl->set_storage(c10::make_intrusive<c10::StorageImpl>(
      static_cast<size_t>(bytes), c10::DataPtr(nullptr, impl->device()), nullptr, false));
}

PyObject* invoke_make_wrapper(ArgValues& a) {
  PyTypeObject* type = tensor_class_of(a.object(0));
  if (!(type_traits(type) & kDispatches)) {
    raise_type_error(c10::str(type->tp_name, " must define __torch_dispatch__"));
  }
  const uint8_t custom = custom_flags(a, 10);
  const c10::Device device = a.opt_device(7).value_or(c10::Device());
  const c10::DispatchKey backend = c10::backend_key(device.type());
  TORCH_CHECK(backend != c10::DispatchKey::Undefined, "there is no backend for device ", device);
  at::Tensor made = at::make_tensor<c10::TensorImpl>(
      c10::Storage(), c10::DispatchKeySet(backend),
      a.opt_scalar_type(5).value_or(c10::get_default_dtype()), device);
  set_wrapper_geometry(a, made.unsafeGetTensorImpl());
  if (a.present(6)) made.unsafeGetTensorImpl()->set_layout(a.layout(6));
  if (made.layout() == at::kStrided) give_nominal_storage(a, made.unsafeGetTensorImpl());
  if (a.given(9) && a.boolean(9)) require_grad(made);
  return with_custom(new_tensor_object(type, std::move(made)), custom);
}
const Signature kWrapperSignature[] = {{kWrapperParams, 15, 15, kNoOverride, invoke_make_wrapper,
                                        "_make_wrapper_subclass(cls, SymInt[] size, ...)"}};
const Function kMakeWrapper = {"_make_wrapper_subclass", "torch.Tensor", kWrapperSignature, 1};

// ---- as_subclass --------------------------------------------------------------------------------
constexpr Param kAsParams[] = {{"self", P::Tensor, 0, 0, nullptr},
                               {"cls", P::Object, 0, 0, nullptr}};
PyObject* invoke_as_subclass(ArgValues& a) {
  PyTypeObject* type = tensor_class_of(a.object(1));
  const at::Tensor& self = a.tensor(0);
  // Gradients flow through the change of class; without them a shallow copy does.
  at::Tensor data = self.requires_grad() ? at::alias(self) : detached(self);
  return new_tensor_object(type, std::move(data));
}
// The way out of a subclass: __torch_function__ would put the result back into it.
const Signature kAsSignature[] = {
    {kAsParams, 2, 2, kNoOverride, invoke_as_subclass, "as_subclass(cls)"}};
const Function kAsSubclass = {"as_subclass", "torch.Tensor", kAsSignature, 1};

PyObject* py_make_subclass(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kMakeSubclass, nullptr, args, n, names);
}
PyObject* py_make_wrapper(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kMakeWrapper, nullptr, args, n, names);
}
PyObject* py_as_subclass(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kAsSubclass, self, args, n, names);
}

} // namespace

PyMethodDef subclass_methods[] = {
    {"_make_subclass", as_method(py_make_subclass), METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     nullptr},
    {"_make_wrapper_subclass", as_method(py_make_wrapper),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"as_subclass", as_method(py_as_subclass), METH_FASTCALL | METH_KEYWORDS,
     "as_subclass(cls)\n\nThis tensor's data as an object of the given subclass."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace torch::python
