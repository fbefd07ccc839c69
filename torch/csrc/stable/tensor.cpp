// Tensors of the C interface: their properties, making them, writing to them.
#include <ATen/core/EmptyTensor.h>

#include <cstdio>
#include <sstream>

#include <ATen/core/Formatting.h>
#include <ATen/from_blob.h>
#include <ATen/ops/all.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sub.h>
#include <c10/core/DeviceHooks.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/values.h>
#include <torch/headeronly/version.h>

using namespace torch::stable; // NOLINT: the C functions lie outside of every namespace

namespace {

using at::IntArrayRef;
using at::Tensor;

// The tensor of a handle, which must be defined.
Tensor& given(AtenTensorHandle handle) {
  Tensor& tensor = tensor_of(handle);
  TORCH_CHECK(tensor.defined(), "expected a defined tensor");
  return tensor;
}

IntArrayRef list(const int64_t* values, int64_t count) {
  TORCH_CHECK(count >= 0 && (count == 0 || values != nullptr), "invalid list of ", count, " sizes");
  return {values, static_cast<size_t>(count)};
}
at::ScalarType dtype_of(int32_t number) {
  TORCH_CHECK(number >= 0 && number < c10::NumScalarTypes, "no such dtype: ", number);
  return static_cast<at::ScalarType>(number);
}
c10::Device device_of(int32_t type, int32_t index) {
  TORCH_CHECK(type >= 0 && type < c10::kNumDeviceTypes, "no such device type: ", type);
  TORCH_CHECK(index >= -1 && index <= 127, "invalid device index ", index);
  const auto kind = static_cast<c10::DeviceType>(type);
  // There is one CPU, whatever its index is said to be.
  if (kind == c10::kCPU || kind == c10::kMeta) return c10::Device(kind);
  return c10::Device(kind, static_cast<c10::DeviceIndex>(index));
}
int64_t checked_dim(const Tensor& tensor, int64_t d) {
  const int64_t rank = tensor.dim();
  TORCH_CHECK_INDEX(d >= -rank && d < rank, "Dimension out of range (expected to be in range of [",
                    -rank, ", ", rank - 1, "], but got ", d, ")");
  return d < 0 ? d + rank : d;
}

} // namespace

// ---- numbers
uint64_t aoti_torch_abi_version() { return TORCH_ABI_VERSION; }
#define CRESSET_NUMBER(kind, name, value)                                                          \
  int32_t aoti_torch_##kind##_##name() { return static_cast<int32_t>(value); }
#define X(name, member) CRESSET_NUMBER(device_type, name, c10::DeviceType::member)
CRESSET_FORALL_SHIM_DEVICES(X)
#undef X
#define X(name, member, element) CRESSET_NUMBER(dtype, name, at::ScalarType::member)
CRESSET_FORALL_SHIM_DTYPES(X)
#undef X
#define X(name, member) CRESSET_NUMBER(layout, name, at::Layout::member)
CRESSET_FORALL_SHIM_LAYOUTS(X)
#undef X
#define X(name, member) CRESSET_NUMBER(memory_format, name, at::MemoryFormat::member)
CRESSET_FORALL_SHIM_MEMORY_FORMATS(X)
#undef X
#undef CRESSET_NUMBER
size_t aoti_torch_dtype_element_size(int32_t dtype) {
  const bool known = dtype >= 0 && dtype < c10::NumScalarTypes;
  return known ? static_cast<size_t>(c10::elementSize(static_cast<at::ScalarType>(dtype))) : 0;
}

// ---- modes
bool aoti_torch_grad_mode_is_enabled() { return c10::tls_autograd_state.grad_mode; }
void aoti_torch_grad_mode_set_enabled(bool enabled) { c10::tls_autograd_state.grad_mode = enabled; }

// ---- handles and properties
AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  return shim([&] { delete reinterpret_cast<Tensor*>(tensor); });
}
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* ret) {
  return shim([&] { *ret = new_handle(tensor_of(tensor)); });
}
AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* ret) {
  return shim([&] { *ret = new_handle(Tensor()); });
}
AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* ret) {
  return shim([&] { *ret = tensor_of(tensor).defined(); });
}
#define CRESSET_PROPERTY(name, type, expression)                                                   \
  AOTITorchError aoti_torch_##name(AtenTensorHandle tensor, type* ret) {                           \
    return shim([&] {                                                                              \
      const Tensor& self = given(tensor);                                                          \
      *ret = static_cast<type>(expression);                                                        \
    });                                                                                            \
  }
CRESSET_PROPERTY(get_data_ptr, void*, self.data_ptr())
CRESSET_PROPERTY(get_storage_size, int64_t, self.storage()->nbytes())
CRESSET_PROPERTY(get_dim, int64_t, self.dim())
CRESSET_PROPERTY(get_numel, int64_t, self.numel())
CRESSET_PROPERTY(get_storage_numel, int64_t,
                 static_cast<int64_t>(self.storage()->nbytes()) / self.itemsize())
CRESSET_PROPERTY(get_sizes, int64_t*, const_cast<int64_t*>(self.sizes().data()))
CRESSET_PROPERTY(get_strides, int64_t*, const_cast<int64_t*>(self.strides().data()))
CRESSET_PROPERTY(get_dtype, int32_t, self.scalar_type())
CRESSET_PROPERTY(get_device_type, int32_t, self.device().type())
CRESSET_PROPERTY(get_device_index, int32_t, self.device().index())
CRESSET_PROPERTY(get_layout, int32_t, self.layout())
CRESSET_PROPERTY(get_storage_offset, int64_t, self.storage_offset())
CRESSET_PROPERTY(is_contiguous, bool, self.is_contiguous())
#undef CRESSET_PROPERTY
AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* ret) {
  return shim([&] { *ret = given(tensor).sizes()[checked_dim(given(tensor), d)]; });
}
AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* ret) {
  return shim([&] { *ret = given(tensor).strides()[checked_dim(given(tensor), d)]; });
}
AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** ret) {
  return aoti_torch_get_data_ptr(tensor, ret);
}
AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor, const void** ret) {
  return shim([&] { *ret = given(tensor).data_ptr(); });
}
AOTITorchError torch_set_requires_grad(AtenTensorHandle tensor, bool requires_grad) {
  return shim([&] { torch::autograd::set_requires_grad(given(tensor), requires_grad); });
}

// ---- making tensors
AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes, const int64_t* strides,
                                        int32_t dtype, int32_t device_type, int32_t device_index,
                                        AtenTensorHandle* ret) {
  return shim([&] {
    *ret = new_handle(at::detail::empty_strided(list(sizes, ndim), list(strides, ndim),
                                                dtype_of(dtype),
                                                device_of(device_type, device_index)));
  });
}
AOTITorchError aoti_torch_create_tensor_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                                                  const int64_t* strides, int64_t storage_offset,
                                                  int32_t dtype, int32_t device_type,
                                                  int32_t device_index, AtenTensorHandle* ret) {
  return shim([&] {
    const auto options =
        at::TensorOptions().dtype(dtype_of(dtype)).device(device_of(device_type, device_index));
    *ret = new_handle(at::from_blob(data, list(sizes, ndim), list(strides, ndim), storage_offset,
                                    nullptr, options));
  });
}
AOTITorchError aoti_torch_create_tensor_from_blob_v2(void* data, int64_t ndim, const int64_t* sizes,
                                                     const int64_t* strides, int64_t storage_offset,
                                                     int32_t dtype, int32_t device_type,
                                                     int32_t device_index, AtenTensorHandle* ret,
                                                     int32_t layout, const uint8_t*,
                                                     int64_t opaque_metadata_size) {
  if (layout != aoti_torch_layout_strided() || opaque_metadata_size != 0) {
    set_last_error("aoti_torch_create_tensor_from_blob_v2: only strided tensors have memory that "
                   "another program can give");
    return AOTI_TORCH_FAILURE;
  }
  return aoti_torch_create_tensor_from_blob(data, ndim, sizes, strides, storage_offset, dtype,
                                            device_type, device_index, ret);
}
AOTITorchError torch_tensor_on_memory(void* data, int64_t ndim, const int64_t* sizes,
                                      const int64_t* strides, int64_t storage_offset, int32_t dtype,
                                      int32_t device_type, int32_t device_index,
                                      void (*deleter)(void*, void*), void* context,
                                      AtenTensorHandle* ret) {
  // Set by whoever called the deleter, or will: the tensor.
  const auto taken = std::make_shared<bool>(false);
  const AOTITorchError code = shim([&] {
    TORCH_CHECK(deleter != nullptr, "torch_tensor_on_memory: the deleter is null");
    const auto options =
        at::TensorOptions().dtype(dtype_of(dtype)).device(device_of(device_type, device_index));
    const IntArrayRef shape = list(sizes, ndim), steps = list(strides, ndim);
    Tensor made = at::from_blob(
        data, shape, steps, storage_offset,
        [deleter, context, taken](void* memory) {
          *taken = true;
          deleter(memory, context);
        },
        options);
    *taken = true;
    *ret = new_handle(std::move(made));
  });
  if (code != AOTI_TORCH_SUCCESS && !*taken && deleter != nullptr) deleter(data, context);
  return code;
}
AOTITorchError aoti_torch__reinterpret_tensor(AtenTensorHandle self, int64_t ndim,
                                              const int64_t* sizes, const int64_t* strides,
                                              int64_t offset_increment, AtenTensorHandle* ret) {
  return shim([&] {
    const Tensor& base = given(self);
    *ret = new_handle(at::detail::checked_view(base, list(sizes, ndim), list(strides, ndim),
                                               base.storage_offset() + offset_increment));
  });
}
AOTITorchError aoti_torch__alloc_from_pool(AtenTensorHandle self, int64_t offset, int32_t dtype,
                                           int64_t ndim, const int64_t* sizes,
                                           const int64_t* strides, AtenTensorHandle* ret) {
  return shim([&] {
    const int64_t itemsize = c10::elementSize(dtype_of(dtype));
    TORCH_CHECK(offset % itemsize == 0, "offset ", offset, " is no multiple of the element size ",
                itemsize);
    *ret = new_handle(at::detail::checked_tensor(given(self).storage(), dtype_of(dtype),
                                                 list(sizes, ndim), list(strides, ndim),
                                                 offset / itemsize));
  });
}
AOTITorchError aoti_torch_as_strided(AtenTensorHandle self, const int64_t* sizes,
                                     const int64_t* strides, AtenTensorHandle* ret) {
  return shim([&] {
    const Tensor& base = given(self);
    *ret = new_handle(at::detail::checked_view(base, list(sizes, base.dim()),
                                               list(strides, base.dim()), base.storage_offset()));
  });
}
AOTITorchError aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* ret) {
  return shim([&] { *ret = new_handle(at::clone(given(self), std::nullopt)); });
}
AOTITorchError aoti_torch_clone_preserve_strides(AtenTensorHandle self, AtenTensorHandle* ret) {
  return shim([&] {
    const Tensor& source = given(self);
    Tensor copy = at::detail::empty_strided(source.sizes(), source.strides(), source.scalar_type(),
                                            source.device());
    copy.copy_(source);
    *ret = new_handle(std::move(copy));
  });
}

// ---- writing
AOTITorchError aoti_torch_assign_tensors(AtenTensorHandle src, AtenTensorHandle dst) {
  return shim([&] { tensor_of(dst) = tensor_of(src); });
}
AOTITorchError aoti_torch_assign_tensors_out(AtenTensorHandle src, AtenTensorHandle* ret) {
  return aoti_torch_new_tensor_handle(src, ret);
}
AOTITorchError aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src, int32_t non_blocking) {
  return shim([&] { given(self).copy_(given(src), non_blocking != 0); });
}
AOTITorchError aoti_torch_tensor_copy_(AtenTensorHandle src, AtenTensorHandle dst) {
  return aoti_torch_copy_(dst, src, 0);
}
AOTITorchError aoti_torch_zero_(AtenTensorHandle self) {
  return shim([&] { given(self).zero_(); });
}
AOTITorchError aoti_torch_aten_fill__Scalar(AtenTensorHandle self, double value) {
  return shim([&] { given(self).fill_(value); });
}

// ---- arithmetic
AOTITorchError torch_aten_subtract(AtenTensorHandle self, AtenTensorHandle other, double alpha,
                                   AtenTensorHandle* ret) {
  return shim([&] { *ret = new_handle(at::sub(given(self), given(other), alpha)); });
}

// ---- one element
#define X(name, member, type)                                                                      \
  AOTITorchError aoti_torch_item_##name(AtenTensorHandle tensor, type* ret) {                      \
    return shim([&] { *ret = given(tensor).item().to<type>(); });                                  \
  }                                                                                                \
  AOTITorchError aoti_torch_scalar_to_tensor_##name(type number, AtenTensorHandle* ret) {          \
    return shim(                                                                                   \
        [&] { *ret = new_handle(at::detail::scalar_tensor(number, at::ScalarType::member)); });    \
  }
CRESSET_FORALL_SHIM_NUMBERS(X)
#undef X

// ---- checks
AOTITorchError aoti_torch_check_inf_and_nan(const char* name, AtenTensorHandle tensor) {
  return shim([&] {
    TORCH_CHECK(at::all(at::isfinite(given(tensor))).item().to<bool>(), name,
                " has values that are infinite or no numbers");
  });
}
void aoti_torch_check(bool condition, const char* function, const char* file, uint32_t line,
                      const char* message) {
  TORCH_CHECK(condition, message, " (", function, " at ", file, ":", line, ")");
}
void aoti_torch_warn(const char* function, const char* file, uint32_t line, const char* message) {
  TORCH_WARN(message, " (", function, " at ", file, ":", line, ")");
}
void aoti_torch_print_tensor_handle(AtenTensorHandle tensor, const char* message) {
  shim([&] {
    std::ostringstream text;
    at::print(text, given(tensor));
    std::printf("%s %s\n", message, text.str().c_str());
  });
}
