// Allocation of dense tensors and construction of views. See EmptyTensor.h.
#include <ATen/core/EmptyTensor.h>

#include <ATen/core/InferenceCheck.h>
#include <ATen/core/QuantizedTensor.h>
#include <ATen/core/SymbolicTensor.h>

#include <c10/core/DeviceHooks.h>
#include <c10/core/SymbolicGeometry.h>

namespace at::detail {
namespace {

DispatchKeySet dense_keys(Device device) {
  if (C10_LIKELY(device.is_cpu())) return DispatchKeySet(DispatchKey::CPU);
  const DispatchKey key = c10::backend_key(device.type());
  TORCH_CHECK_NOT_IMPLEMENTED(key != DispatchKey::Undefined,
                              "Could not run 'aten::empty.memory_format' with arguments from the '",
                              c10::device_type_name(device.type()),
                              "' backend: this build has no such backend");
  return DispatchKeySet(key);
}

// `device` gets the index it was asked for without.
Storage storage_for(int64_t bytes, Device& device) {
  if (C10_UNLIKELY(!device.is_cpu() && !device.is_meta())) device = c10::usable_device(device);
  return c10::make_storage(static_cast<size_t>(bytes), device);
}

void check_sizes(IntArrayRef sizes) {
  for (int64_t s : sizes)
    TORCH_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
}
} // namespace

Tensor empty(IntArrayRef sizes, ScalarType dtype, Device device) {
  check_sizes(sizes);
  const int64_t numel = c10::checked_numel(sizes);
  int64_t bytes = 0;
  if (C10_UNLIKELY(c10::mul_overflows(numel, c10::elementSize(dtype), &bytes)))
    c10::throw_size_overflow(sizes);
  Storage storage = storage_for(bytes, device);
  return Tensor(c10::make_intrusive<TensorImpl>(std::move(storage), dense_keys(device), dtype,
                                                device, sizes, numel));
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, Device device) {
  check_sizes(sizes);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  for (int64_t s : strides)
    TORCH_CHECK(s >= 0, "empty_strided(): negative strides are not supported, got ", strides);
  const int64_t bytes = c10::checked_storage_bytes(sizes, strides, c10::elementSize(dtype), 0);
  Storage storage = storage_for(bytes, device);
  auto impl =
      c10::make_intrusive<TensorImpl>(std::move(storage), dense_keys(device), dtype, device);
  impl->set_geometry(sizes, strides, 0);
  return Tensor(std::move(impl));
}

Tensor empty_strided_symint(SymIntArrayRef sizes, SymIntArrayRef strides, ScalarType dtype,
                            Device device) {
  if (!device.is_meta() || !(c10::has_symbolic(sizes) || c10::has_symbolic(strides)))
    return empty_strided(c10::as_int_array(sizes), c10::as_int_array(strides), dtype, device);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  for (SymInt s : sizes)
    TORCH_CHECK(c10::expect_true(c10::sym_ge(s, 0)),
                "Trying to create tensor with negative dimension ", s);
  Storage storage = storage_for(0, device);
  storage->set_sym_nbytes(c10::sym_storage_bytes(sizes, strides, c10::elementSize(dtype), 0));
  auto impl =
      c10::make_intrusive<TensorImpl>(std::move(storage), dense_keys(device), dtype, device);
  impl->set_symbolic_geometry(sizes, strides, 0);
  return Tensor(std::move(impl));
}

Tensor empty_symint(SymIntArrayRef sizes, ScalarType dtype, Device device) {
  if (!device.is_meta() || !c10::has_symbolic(sizes))
    return empty(c10::as_int_array(sizes), dtype, device);
  return empty_strided_symint(sizes, c10::sym_contiguous_strides(sizes), dtype, device);
}

Tensor scalar_tensor(const Scalar& value, ScalarType dtype) {
  Tensor out = empty({}, dtype);
  switch (dtype) {
#define CASE(T, Name)                                                                              \
  case ScalarType::Name:                                                                           \
    *static_cast<T*>(out.data_ptr()) = value.to<T>();                                              \
    break;
    CRESSET_FORALL_ARITHMETIC_TYPES(CASE)
#undef CASE
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "scalar_tensor is not implemented for ", dtype, " on cpu");
  }
  return out;
}

Tensor wrapped_number(const Scalar& value) {
  Tensor out = scalar_tensor(value, value.type());
  out.unsafeGetTensorImpl()->set_wrapped_number(true);
  return out;
}

// ---- views --------------------------------------------------------------------------------------
void check_in_bounds(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset,
                     int64_t itemsize, size_t storage_bytes) {
  TORCH_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  check_sizes(sizes);
  for (int64_t s : strides)
    TORCH_CHECK(
        s >= 0,
        "as_strided: Negative strides are not supported at the moment, got strides: ", strides);
  TORCH_CHECK(storage_offset >= 0, "Tensor: invalid storage offset ", storage_offset);
  const int64_t bytes = c10::checked_storage_bytes(sizes, strides, itemsize, storage_offset);
  TORCH_CHECK(bytes == 0 || static_cast<size_t>(bytes) <= storage_bytes, "setStorage: sizes ",
              sizes, ", strides ", strides, ", storage offset ", storage_offset, ", and itemsize ",
              itemsize, " requiring a storage size of ", bytes,
              " are out of bounds for storage of size ", storage_bytes);
}

namespace {
void set_geometry(TensorImpl& impl, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  impl.set_geometry(sizes, strides, offset);
}
void set_geometry(TensorImpl& impl, SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset) {
  impl.set_symbolic_geometry(sizes, strides, offset);
}

// A view of a quantized tensor means by its levels what the tensor does.
template <class Int>
c10::intrusive_ptr<TensorImpl> quantized_view(const TensorImpl& source, ScalarType dtype,
                                              ArrayRef<Int> sizes, ArrayRef<Int> strides) {
  if constexpr (std::is_same_v<Int, int64_t>)
    quantized::check_view(static_cast<const quantized::QuantizedTensorImpl&>(source), dtype, sizes,
                          strides);
  c10::intrusive_ptr<TensorImpl> impl = source.shallow_copy();
  impl->set_key_set(source.key_set() - c10::kAutogradKeys);
  return impl;
}

template <class Int> Tensor make_view(const Tensor& self, ScalarType dtype, ArrayRef<Int> sizes,
                                      ArrayRef<Int> strides, Int storage_offset) {
  const TensorImpl& source = *self.unsafeGetTensorImpl();
  TORCH_CHECK_NOT_IMPLEMENTED(source.layout() == kStrided || source.has_storage(),
                              "a tensor of layout ", source.layout(), " and dtype ", source.dtype(),
                              " has no memory that could be viewed");
  c10::intrusive_ptr<TensorImpl> impl =
      C10_UNLIKELY(source.key_set().has(DispatchKey::QuantizedCPU))
          ? quantized_view(source, dtype, sizes, strides)
          : c10::make_intrusive<TensorImpl>(source.storage(), source.key_set() - c10::kAutogradKeys,
                                            dtype, source.device());
  set_geometry(*impl, sizes, strides, storage_offset);
  const c10::AutogradState& state = c10::tls_autograd_state;
  if (C10_LIKELY(!source.is_inference())) {
    if (C10_UNLIKELY(state.inference_mode)) {
      impl->set_inference(false);
      impl->set_key_set(impl->key_set().remove(kInferenceKey));
    }
    impl->set_view_of(source.is_view() ? source.base() : self.getIntrusivePtr());
    if (!state.grad_mode)
      impl->view_origin =
          state.inference_mode ? TensorImpl::ViewOrigin::Inference : TensorImpl::ViewOrigin::NoGrad;
    if (source.is_view() && source.view_origin != TensorImpl::ViewOrigin::Default)
      impl->view_origin = source.view_origin;
  } else {
    impl->set_inference(true);
    impl->set_key_set(impl->key_set().remove(DispatchKey::ADInplaceOrView));
  }
  return Tensor(std::move(impl));
}
} // namespace

Tensor checked_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides,
                    int64_t storage_offset) {
  TORCH_CHECK(base.has_storage(), "Cannot access the storage of a tensor of layout ",
              base.layout());
  check_in_bounds(sizes, strides, storage_offset, base.itemsize(), base.storage()->nbytes());
  return make_view(base, base.scalar_type(), sizes, strides, storage_offset);
}

Tensor checked_tensor(const Storage& storage, ScalarType dtype, IntArrayRef sizes,
                      IntArrayRef strides, int64_t storage_offset) {
  check_in_bounds(sizes, strides, storage_offset, c10::elementSize(dtype), storage->nbytes());
  auto impl = c10::make_intrusive<TensorImpl>(storage, dense_keys(storage->device()), dtype,
                                              storage->device());
  impl->set_geometry(sizes, strides, storage_offset);
  return Tensor(std::move(impl));
}

Tensor view_of(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset) {
  return make_view(self, self.scalar_type(), sizes, strides, storage_offset);
}

Tensor view_of_symint(const Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides,
                      SymInt storage_offset) {
  return make_view(self, self.scalar_type(), sizes, strides, storage_offset);
}

Tensor view_of_dtype(const Tensor& self, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides,
                     int64_t storage_offset) {
  return make_view(self, dtype, sizes, strides, storage_offset);
}

} // namespace at::detail
