// Changing what a tensor refers to: resize_, set_ and their relatives, and questions about dtypes.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <ATen/native/copy/Native.h>
#include <c10/core/Retired.h>

namespace at::native {
namespace {
void check_resizable(const Tensor& self, const char* name) {
  TORCH_CHECK(!self.requires_grad(), "cannot resize variables that require grad");
  TORCH_CHECK(self.has_storage(), name, ": a tensor of layout ", self.layout(),
              " has no storage to resize");
}

void apply_format(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  if (!memory_format || *memory_format == MemoryFormat::Contiguous) {
    resize_contiguous(self, size);
    return;
  }
  TORCH_CHECK(*memory_format != MemoryFormat::Preserve, "Unsupported memory format ",
              *memory_format);
  resize_strided(self, size, c10::channels_last_strides(size));
}
} // namespace

const Tensor& resize_impl(const Tensor& self, IntArrayRef size,
                          std::optional<MemoryFormat> memory_format) {
  check_resizable(self, "resize_");
  if (self.sizes() == size && !memory_format) return self;
  apply_format(self, size, memory_format);
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}
Tensor& resize_(Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  resize_impl(self, size, memory_format);
  return self;
}
Tensor& resize_as_(Tensor& self, const Tensor& the_template,
                   std::optional<MemoryFormat> memory_format) {
  if (memory_format && *memory_format == MemoryFormat::Preserve)
    memory_format = the_template.suggest_memory_format();
  resize_impl(self, the_template.sizes(), memory_format);
  return self;
}

// ---- set_ -------------------------------------------------------------------------------------
namespace {
void rebind(const Tensor& self, const Storage& source, int64_t offset, IntArrayRef size,
            IntArrayRef stride) {
  TORCH_CHECK(!self.requires_grad() || !c10::tls_autograd_state.grad_mode,
              "a leaf Variable that requires grad is being used in an in-place operation: set_() "
              "changes its storage, which only torch.no_grad() allows");
  TORCH_CHECK(source->device() == self.device(),
              "Attempted to set the storage of a tensor on device \"", self.device(),
              "\" to a storage on different device \"", source->device(),
              "\".  This is no longer allowed; the devices must match.");
  detail::check_in_bounds(size, stride, offset, self.itemsize(), source->nbytes());
  TensorImpl& impl = *self.unsafeGetTensorImpl();
  c10::retire(impl.storage());
  impl.set_storage(source);
  impl.set_geometry(size, stride, offset);
  impl.bump_version();
}
} // namespace

Tensor& set_storage_offset_(Tensor& self, Storage source, int64_t storage_offset, IntArrayRef size,
                            IntArrayRef stride) {
  TORCH_CHECK(source.defined(), "set_(): the storage is undefined");
  if (!stride.empty() || size.empty()) {
    rebind(self, source, storage_offset, size, stride);
  } else {
    rebind(self, source, storage_offset, size, c10::contiguous_strides(size));
  }
  return self;
}
Tensor& set_storage_(Tensor& self, Storage source) {
  TORCH_CHECK(source.defined(), "set_(): the storage is undefined");
  const int64_t n = static_cast<int64_t>(source->nbytes()) / self.itemsize();
  rebind(self, source, 0, {n}, {int64_t(1)});
  return self;
}
Tensor& set_tensor_(Tensor& self, const Tensor& source) {
  TORCH_CHECK(source.scalar_type() == self.scalar_type(), "Could not set tensor of type ",
              source.scalar_type(), " to a tensor of type ", self.scalar_type());
  TORCH_CHECK(source.has_storage(), "set_(): source has no storage");
  if (!self.is_same(source))
    rebind(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
  return self;
}
Tensor& set_empty_(Tensor& self) {
  const Tensor fresh = detail::empty({0}, self.scalar_type(), self.device());
  rebind(self, fresh.storage(), 0, {int64_t(0)}, {int64_t(1)});
  return self;
}

// ---- dtypes -----------------------------------------------------------------------------------
ScalarType result_type_tensors(const Tensor& tensor, const Tensor& other) {
  return result_type_of(tensor, other);
}
ScalarType result_type_scalar(const Tensor& tensor, const Scalar& other) {
  return result_type_of(tensor, other);
}
ScalarType result_type_scalar_tensor(const Scalar& scalar, const Tensor& tensor) {
  return result_type_of(tensor, scalar);
}
ScalarType result_type_scalars(const Scalar& scalar1, const Scalar& scalar2) {
  ResultType state;
  state.add(scalar1);
  state.add(scalar2);
  return state.get();
}
bool can_cast(ScalarType from_, ScalarType to) { return c10::canCast(from_, to); }
ScalarType promote_types(ScalarType type1, ScalarType type2) {
  return c10::promoteTypes(type1, type2);
}

} // namespace at::native
