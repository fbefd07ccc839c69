// Methods of tensors that are no operators: geometry, flags, elements, and requires_grad_. Methods
// without arguments are plain functions behind one template that asks __torch_function__ first;
// those with arguments use the parser.
#include <torch/csrc/python/tensor/tensor.h>

#include <ATen/functorch/Level.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/autograd/bridge.h>
#include <torch/csrc/python/dispatch/custom_geometry.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/scalar_access.h>
#include <torch/csrc/python/tensor/storage.h>

namespace torch::python {
namespace {

// ---- methods without arguments ------------------------------------------------------------------
struct Simple {
  const char* name;
  PyObject* (*run)(PyObject* self); // throws
};

template <const Simple& kMethod> PyObject* simple(PyObject* self, PyObject*) {
  PyObject* result = nullptr;
  if (C10_UNLIKELY(!is_plain_tensor(self) || function_mode_active())) {
    if (slot_override(kMethod.name, &self, 1, &result)) return result;
  }
  return guarded([&] { return kMethod.run(self); });
}

PyObject* run_dim(PyObject* self) {
  if (PyRef answer = custom_answer(self, kCustomSizes, "dim")) return answer.release();
  return PyLong_FromLongLong(tensor_of(self).dim());
}
PyObject* run_numel(PyObject* self) {
  if (PyRef answer = custom_answer(self, kCustomSizes, "numel")) return answer.release();
  return wrap(tensor_of(self).sym_numel());
}
PyObject* run_offset(PyObject* self) {
  if (PyRef answer = custom_answer(self, kCustomStrides, "offset")) return answer.release();
  return wrap(tensor_of(self).sym_storage_offset());
}
PyObject* run_element_size(PyObject* self) {
  return PyLong_FromLongLong(tensor_of(self).element_size());
}
PyObject* run_data_ptr(PyObject* self) {
  const bool sparse = tensor_of(self).layout() != at::kStrided && !tensor_of(self).has_storage();
  TORCH_CHECK(!sparse && at::functorch::wrapper_of(tensor_of(self)) == nullptr,
              "Cannot access data pointer of Tensor that doesn't have storage");
  // Whether there are elements at all is the class's to say.
  if (PyRef count = custom_answer(self, kCustomSizes, "elements")) {
    if (!PyObject_IsTrue(count.get())) return PyLong_FromLong(0);
  }
  // Null is 0, and so is the address of no element.
  if (tensor_of(self).numel() == 0) return PyLong_FromLong(0);
  return PyLong_FromUnsignedLongLong(
      reinterpret_cast<unsigned long long>(tensor_of(self).unsafeGetTensorImpl()->data()));
}
PyObject* run_item(PyObject* self) { return wrap(item_of(tensor_of(self))); }
PyObject* run_tolist(PyObject* self) { return tensor_to_list(tensor_of(self)); }
// Inference tensors keep no relation to their base that a program could see.
PyObject* run_is_view(PyObject* self) {
  return new_bool(tensor_of(self).is_view() && !tensor_of(self).is_inference());
}
PyObject* run_is_floating(PyObject* self) { return new_bool(tensor_of(self).is_floating_point()); }
PyObject* run_is_complex(PyObject* self) { return new_bool(tensor_of(self).is_complex()); }
PyObject* run_is_signed(PyObject* self) { return new_bool(tensor_of(self).is_signed()); }
PyObject* run_is_conj(PyObject* self) { return new_bool(tensor_of(self).is_conj()); }
PyObject* run_is_neg(PyObject* self) { return new_bool(tensor_of(self).is_neg()); }
PyObject* run_is_inference(PyObject* self) { return new_bool(tensor_of(self).is_inference()); }
PyObject* run_use_count(PyObject* self) {
  return PyLong_FromUnsignedLong(tensor_of(self).use_count());
}
PyObject* run_get_device(PyObject* self) {
  const c10::Device device = tensor_of(self).device();
  return PyLong_FromLong(device.is_cpu() ? -1 : device.index());
}
bool is_compressed(c10::Layout layout) {
  return layout == c10::Layout::SparseCsr || layout == c10::Layout::SparseCsc ||
         layout == c10::Layout::SparseBsr || layout == c10::Layout::SparseBsc;
}
PyObject* run_untyped_storage(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.has_storage(), "Cannot access storage of ",
                              tensor.is_sparse()               ? "SparseTensorImpl"
                              : is_compressed(tensor.layout()) ? "SparseCsrTensorImpl"
                                                               : "a tensor without memory");
  return wrap_storage(tensor.storage());
}
PyObject* run_bool(PyObject* self) { return new_bool(truth_of(tensor_of(self))); }
PyObject* run_complex(PyObject* self) {
  if (tensor_of(self).numel() != 1) {
    raise(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  }
  const c10::complex<double> z = item_of(tensor_of(self)).toComplexDouble();
  return PyComplex_FromDoubles(z.real(), z.imag());
}
PyObject* run_retain_grad(PyObject* self) {
  TORCH_CHECK(
      at::functorch::level_stack().empty(),
      "You are attempting to call Tensor.retain_grad() inside of a function being "
      "transformed by a functorch transform. This is unsupported, please attempt to use the "
      "functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call retain_grad() "
      "outside of a function being transformed instead.");
  autograd::retain_grad(tensor_of(self));
  return new_none();
}
PyObject* run_fix_weakref(PyObject* self) {
  // An object reached through a weak reference must own its tensor again.
  return wrap(at::Tensor(tensor_of(self)));
}

constexpr Simple kDim = {"dim", run_dim};
constexpr Simple kNdimension = {"ndimension", run_dim};
constexpr Simple kNumel = {"numel", run_numel};
constexpr Simple kNelement = {"nelement", run_numel};
constexpr Simple kStorageOffset = {"storage_offset", run_offset};
constexpr Simple kElementSize = {"element_size", run_element_size};
constexpr Simple kDataPtr = {"data_ptr", run_data_ptr};
constexpr Simple kConstDataPtr = {"const_data_ptr", run_data_ptr};
constexpr Simple kItem = {"item", run_item};
constexpr Simple kToList = {"tolist", run_tolist};
constexpr Simple kIsView = {"_is_view", run_is_view};
constexpr Simple kIsFloatingPoint = {"is_floating_point", run_is_floating};
constexpr Simple kIsComplex = {"is_complex", run_is_complex};
constexpr Simple kIsSigned = {"is_signed", run_is_signed};
constexpr Simple kIsConj = {"is_conj", run_is_conj};
constexpr Simple kIsNeg = {"is_neg", run_is_neg};
constexpr Simple kIsInference = {"is_inference", run_is_inference};
constexpr Simple kUseCount = {"_use_count", run_use_count};
constexpr Simple kGetDevice = {"get_device", run_get_device};
constexpr Simple kUntypedStorage = {"untyped_storage", run_untyped_storage};
constexpr Simple kNonzero = {"__nonzero__", run_bool};
constexpr Simple kIsNonzero = {"is_nonzero", run_bool};
constexpr Simple kComplexNumber = {"__complex__", run_complex};
constexpr Simple kRetainGrad = {"retain_grad", run_retain_grad};
constexpr Simple kFixWeakref = {"_fix_weakref", run_fix_weakref};

// ---- methods with arguments ---------------------------------------------------------------------
constexpr Param kSelf = {"self", P::Tensor, 0, 0, nullptr};
constexpr Param kDimParams[] = {kSelf, {"dim", P::Int, kHasDefault | kOptional, 0, "None"}};

int64_t checked_dim(const at::Tensor& tensor, int64_t dim) {
  const int64_t n = tensor.dim();
  TORCH_CHECK_INDEX(n > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  TORCH_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [",
                    -n, ", ", n - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

PyObject* invoke_size(ArgValues& a) {
  const at::Tensor& self = a.tensor(0);
  if (PyRef answer = custom_answer(a.object(0), kCustomSizes, "sizes")) {
    return a.present(1) ? PySequence_GetItem(answer.get(), a.integer(1)) : answer.release();
  }
  if (!a.present(1)) return size_of(self);
  return wrap(self.sym_sizes()[checked_dim(self, a.integer(1))]);
}
PyObject* invoke_stride(ArgValues& a) {
  const at::Tensor& self = a.tensor(0);
  if (PyRef answer = custom_answer(a.object(0), kCustomStrides, "strides")) {
    return a.present(1) ? PySequence_GetItem(answer.get(), a.integer(1)) : answer.release();
  }
  if (C10_UNLIKELY(self.layout() != at::kStrided && !self.has_storage())) {
    TORCH_CHECK(self.layout() == at::Layout::Sparse, "Sparse CSR tensors do not have strides");
    if (a.present(1)) return PyLong_FromLong(checked_dim(self, a.integer(1)) * 0);
    return make_int_tuple(c10::DimVector(static_cast<size_t>(self.dim()), 0));
  }
  if (a.present(1)) return wrap(self.sym_strides()[checked_dim(self, a.integer(1))]);
  if (C10_UNLIKELY(self.unsafeGetTensorImpl()->has_symbolic_sizes()))
    return make_sym_tuple(self.sym_strides());
  return make_int_tuple(self.strides());
}
const Signature kSizeSignature[] = {{kDimParams, 2, 2, 0, invoke_size, "size(int? dim=None)"}};
const Signature kStrideSignature[] = {
    {kDimParams, 2, 2, 0, invoke_stride, "stride(int? dim=None)"}};
const Function kSize = {"size", "torch.Tensor", kSizeSignature, 1};
const Function kStride = {"stride", "torch.Tensor", kStrideSignature, 1};

PyObject* py_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  if (C10_LIKELY(n == 0 && !names && is_plain_tensor(self) && !function_mode_active())) {
    return guarded([&] { return size_of(tensor_of(self)); });
  }
  return call(kSize, self, args, n, names);
}
PyObject* py_stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kStride, self, args, n, names);
}

constexpr Param kFormatParams[] = {
    kSelf, {"memory_format", P::MemoryFormat, kHasDefault | kKwOnly, 0, "torch.contiguous_format"}};
c10::MemoryFormat format_of(ArgValues& a) {
  return a.present(1) ? a.memory_format(1) : c10::MemoryFormat::Contiguous;
}
// What the class of the tensor says, or null.
PyRef custom_contiguous(ArgValues& a) {
  const bool plain = !a.present(1) || a.memory_format(1) == c10::MemoryFormat::Contiguous;
  if (plain) return custom_answer(a.object(0), kCustomStrides, "contiguous");
  return custom_answer(a.object(0), kCustomStrides, "contiguous_in_format", a.object(1));
}
PyObject* invoke_is_contiguous(ArgValues& a) {
  if (PyRef answer = custom_contiguous(a)) return answer.release();
  const c10::MemoryFormat format = format_of(a);
  TORCH_CHECK(format != c10::MemoryFormat::Preserve,
              "is_contiguous: torch.preserve_format is not a layout to test for");
  TORCH_CHECK(!is_compressed(a.tensor(0).layout()), "Sparse CSR tensors do not have is_contiguous");
  const bool strided = a.tensor(0).layout() == at::kStrided || a.tensor(0).has_storage();
  return new_bool(strided && a.tensor(0).is_contiguous(format));
}
PyObject* invoke_contiguous(ArgValues& a) {
  const at::Tensor& self = a.tensor(0);
  const c10::MemoryFormat format = format_of(a);
  TORCH_CHECK(format != c10::MemoryFormat::Preserve,
              "preserve memory format is unsupported by the contiguous operator");
  const PyRef answer = custom_contiguous(a);
  if (answer ? answer.get() == Py_True : self.is_contiguous(format)) return wrap_self(a);
  return wrap(answer ? self.clone(format) : self.contiguous(format));
}
const Signature kIsContiguousSignature[] = {
    {kFormatParams, 2, 1, 0, invoke_is_contiguous, "is_contiguous(*, memory_format)"}};
const Signature kContiguousSignature[] = {
    {kFormatParams, 2, 1, 0, invoke_contiguous, "contiguous(*, memory_format)"}};
const Function kIsContiguous = {"is_contiguous", "torch.Tensor", kIsContiguousSignature, 1};
const Function kContiguous = {"contiguous", "torch.Tensor", kContiguousSignature, 1};

PyObject* py_is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kIsContiguous, self, args, n, names);
}
PyObject* py_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kContiguous, self, args, n, names);
}

constexpr Param kGradParams[] = {kSelf, {"requires_grad", P::Bool, kHasDefault, 0, "True"}};
PyObject* invoke_requires_grad(ArgValues& a) {
  TORCH_CHECK(at::functorch::level_stack().empty(),
              "You are attempting to call Tensor.requires_grad_() (or perhaps using "
              "torch.autograd.functional.* APIs) inside of a function being transformed by a "
              "functorch transform. This is unsupported, please attempt to use the functorch "
              "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() "
              "outside of a function being transformed instead.");
  const at::Tensor& tensor = a.tensor(0);
  const bool value = a.given(1) ? a.boolean(1) : true;
  TORCH_CHECK(!value || tensor.is_floating_point() || tensor.is_complex(),
              "only Tensors of floating point dtype can require gradients");
  set_requires_grad(tensor, value);
  return wrap_self(a);
}
const Signature kGradSignature[] = {
    {kGradParams, 2, 2, 0, invoke_requires_grad, "requires_grad_(bool requires_grad=True)"}};
const Function kRequiresGrad = {"requires_grad_", "torch.Tensor", kGradSignature, 1};
PyObject* py_requires_grad(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kRequiresGrad, self, args, n, names);
}

constexpr Param kSetParams[] = {kSelf, {"tensor", P::Tensor, 0, 0, nullptr}};
PyObject* invoke_is_set_to(ArgValues& a) {
  const at::Tensor &self = a.tensor(0), &other = a.tensor(1);
  return new_bool(self.is_alias_of(other) && self.storage_offset() == other.storage_offset() &&
                  self.sizes() == other.sizes() && self.strides() == other.strides());
}
const Signature kSetSignature[] = {
    {kSetParams, 2, 2, 0, invoke_is_set_to, "is_set_to(Tensor tensor)"}};
const Function kIsSetTo = {"is_set_to", "torch.Tensor", kSetSignature, 1};
PyObject* py_is_set_to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kIsSetTo, self, args, n, names);
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

} // namespace

#define CRESSET_SIMPLE(method)                                                                     \
  { method.name, simple<method>, METH_NOARGS, nullptr }
PyMethodDef tensor_methods[] = {
    {"size", as_method(py_size), kFast,
     "size(dim=None)\n\nThe lengths, or the length of one dimension."},
    {"stride", as_method(py_stride), kFast,
     "stride(dim=None)\n\nSteps between elements, in elements."},
    {"is_contiguous", as_method(py_is_contiguous), kFast, "is_contiguous(*, memory_format)"},
    {"contiguous", as_method(py_contiguous), kFast, "contiguous(*, memory_format)"},
    {"is_set_to", as_method(py_is_set_to), kFast,
     "is_set_to(tensor)\n\nWhether both are the same view of the same memory."},
    {"requires_grad_", as_method(py_requires_grad), kFast, "requires_grad_(requires_grad=True)"},
    CRESSET_SIMPLE(kDim),
    CRESSET_SIMPLE(kNdimension),
    CRESSET_SIMPLE(kNumel),
    CRESSET_SIMPLE(kNelement),
    CRESSET_SIMPLE(kStorageOffset),
    CRESSET_SIMPLE(kElementSize),
    CRESSET_SIMPLE(kDataPtr),
    CRESSET_SIMPLE(kConstDataPtr),
    CRESSET_SIMPLE(kItem),
    CRESSET_SIMPLE(kToList),
    CRESSET_SIMPLE(kIsView),
    CRESSET_SIMPLE(kIsFloatingPoint),
    CRESSET_SIMPLE(kIsComplex),
    CRESSET_SIMPLE(kIsSigned),
    CRESSET_SIMPLE(kIsConj),
    CRESSET_SIMPLE(kIsNeg),
    CRESSET_SIMPLE(kIsInference),
    CRESSET_SIMPLE(kUseCount),
    CRESSET_SIMPLE(kGetDevice),
    CRESSET_SIMPLE(kUntypedStorage),
    CRESSET_SIMPLE(kNonzero),
    CRESSET_SIMPLE(kIsNonzero),
    CRESSET_SIMPLE(kComplexNumber),
    CRESSET_SIMPLE(kRetainGrad),
    CRESSET_SIMPLE(kFixWeakref),
    {nullptr, nullptr, 0, nullptr}};
#undef CRESSET_SIMPLE

} // namespace torch::python
