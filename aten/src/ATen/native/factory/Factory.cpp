// Factories that only decide sizes, strides, dtype and device; filling is the copy family's work.
#include <algorithm>
#include <limits>

#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/factory/Native.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <c10/core/DeviceHooks.h>

namespace at::native {
namespace {

void check_layout(const char* name, std::optional<Layout> layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == Layout::Strided, name,
                              " is not implemented for layout ",
                              layout ? *layout : Layout::Strided);
}
// Only memory of the CPU can be page-locked.
void check_not_pinned(std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory || !*pin_memory, "Only dense CPU tensors can be pinned");
}
// The tensor with page-locked memory in place of its own, which has not been written yet.
Tensor pinned(Tensor t) {
  c10::Allocator* allocator = c10::require_device_hooks(kCUDA).pinned_allocator();
  const size_t bytes = t.storage()->nbytes();
  t.unsafeGetTensorImpl()->set_storage(
      c10::make_intrusive<c10::StorageImpl>(bytes, allocator->allocate(bytes), allocator, true));
  return t;
}

// Filling is part of making: a new tensor has not been written by its user.
Tensor unwritten(Tensor t) {
  t.unsafeGetTensorImpl()->set_version(0);
  return t;
}
// The largest number of a dtype, NaN where it has one: a value that is noticed.
Scalar noticeable(ScalarType type) {
  if (type == kBool) return true;
  if (!c10::isIntegralType(type, false)) return std::numeric_limits<double>::quiet_NaN();
  const int64_t bits = 8 * static_cast<int64_t>(c10::elementSize(type));
  const bool is_signed = c10::isSignedType(type);
  if (bits == 64 && !is_signed) return Scalar(std::numeric_limits<uint64_t>::max());
  return static_cast<int64_t>((uint64_t(1) << (is_signed ? bits - 1 : bits)) - 1);
}
// With deterministic algorithms asked for, memory that nobody has written has known contents.
bool may_stay_unwritten() {
  return C10_LIKELY(!globalContext().deterministic_algorithms.load(std::memory_order_relaxed));
}
Tensor settled(Tensor t) {
  const Context& settings = globalContext();
  if (may_stay_unwritten()) return t;
  if (!settings.deterministic_fill_uninitialized || t.is_meta() || t.numel() == 0) return t;
  t.fill_(noticeable(t.scalar_type()));
  return unwritten(std::move(t));
}

Tensor empty_on(Device device, IntArrayRef size, std::optional<ScalarType> dtype,
                std::optional<Layout> layout, std::optional<MemoryFormat> memory_format) {
  check_layout("empty", layout);
  const ScalarType type = dtype ? *dtype : c10::get_default_dtype();
  if (C10_LIKELY(!memory_format || *memory_format == MemoryFormat::Contiguous))
    return settled(detail::empty(size, type, device));
  TORCH_CHECK(*memory_format != MemoryFormat::Preserve,
              "unsupported memory format: preserve_format needs a tensor to follow");
  const size_t rank = *memory_format == MemoryFormat::ChannelsLast ? 4 : 5;
  TORCH_CHECK(size.size() == rank, "required rank ", rank, " tensor to use ", *memory_format,
              " format");
  return settled(detail::empty_strided(size, c10::channels_last_strides(size), type, device));
}
Device device_or(std::optional<Device> device, DeviceType type) {
  return device ? *device : Device(type);
}
Tensor empty_sparse(IntArrayRef size, std::optional<ScalarType> dtype, Layout layout,
                    Device device) {
  const ScalarType type = dtype ? *dtype : c10::get_default_dtype();
  return layout == Layout::Sparse
             ? sparse::empty_coo(size, static_cast<int64_t>(size.size()), type, device)
             : sparse::empty_compressed(size, layout, type, device);
}
} // namespace

Tensor empty_cpu(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin_memory,
                 std::optional<MemoryFormat> memory_format) {
  const bool plain = (!layout || *layout == Layout::Strided) && !pin_memory.value_or(false) &&
                     memory_format.value_or(MemoryFormat::Contiguous) == MemoryFormat::Contiguous;
  if (C10_LIKELY(plain && may_stay_unwritten()))
    return detail::empty(size, dtype ? *dtype : c10::get_default_dtype());
  if (C10_UNLIKELY(layout && sparse::is_sparse_layout(*layout))) {
    check_not_pinned(pin_memory);
    return empty_sparse(size, dtype, *layout, Device(kCPU));
  }
  Tensor out = empty_on(Device(kCPU), size, dtype, layout, memory_format);
  return C10_LIKELY(!pin_memory || !*pin_memory) ? out : pinned(std::move(out));
}
Tensor empty_cuda(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  check_not_pinned(pin_memory);
  if (C10_UNLIKELY(layout && sparse::is_sparse_layout(*layout)))
    return empty_sparse(size, dtype, *layout, device_or(device, kCUDA));
  return empty_on(device_or(device, kCUDA), size, dtype, layout, memory_format);
}
Tensor empty_meta(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  check_not_pinned(pin_memory);
  return empty_on(device_or(device, kMeta), size, dtype, layout, memory_format);
}

// Symbolic sizes: only tensors without memory keep them.
Tensor empty_symbolic(SymIntArrayRef size, std::optional<ScalarType> dtype,
                      std::optional<Layout> layout, std::optional<Device> device,
                      std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  check_layout("empty", layout);
  check_not_pinned(pin_memory);
  const ScalarType type = dtype ? *dtype : c10::get_default_dtype();
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  if (format == MemoryFormat::Contiguous)
    return detail::empty_symint(size, type, device_or(device, kMeta));
  TORCH_CHECK(format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d,
              "Unsupported memory format ", format, " of a tensor with symbolic sizes");
  const size_t channels_last_rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  TORCH_CHECK(size.size() == channels_last_rank, "required rank ", channels_last_rank,
              " tensor to use ", format, " format");
  SymDimVector strides(size.size());
  strides[1] = 1;
  SymInt step = size[1];
  for (size_t d = size.size() - 1; d >= 2; --d) {
    strides[d] = step;
    step = step * size[d];
  }
  strides[0] = step;
  return detail::empty_strided_symint(size, strides, type, device_or(device, kMeta));
}
Tensor empty_strided_symbolic(SymIntArrayRef size, SymIntArrayRef stride,
                              std::optional<ScalarType> dtype, std::optional<Layout> layout,
                              std::optional<Device> device, std::optional<bool> pin_memory) {
  check_layout("empty_strided", layout);
  check_not_pinned(pin_memory);
  return detail::empty_strided_symint(size, stride, dtype ? *dtype : c10::get_default_dtype(),
                                      device_or(device, kMeta));
}

Tensor empty_strided_cpu(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                         std::optional<Layout> layout, std::optional<Device> device,
                         std::optional<bool> pin_memory) {
  check_layout("empty_strided", layout);
  Tensor out =
      settled(detail::empty_strided(size, stride, dtype ? *dtype : c10::get_default_dtype()));
  return C10_LIKELY(!pin_memory || !*pin_memory) ? out : pinned(std::move(out));
}
Tensor empty_strided_cuda(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                          std::optional<Layout> layout, std::optional<Device> device,
                          std::optional<bool> pin_memory) {
  check_layout("empty_strided", layout);
  check_not_pinned(pin_memory);
  return settled(detail::empty_strided(size, stride, dtype ? *dtype : c10::get_default_dtype(),
                                       device_or(device, kCUDA)));
}
Tensor empty_strided_meta(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                          std::optional<Layout> layout, std::optional<Device> device,
                          std::optional<bool> pin_memory) {
  check_layout("empty_strided", layout);
  return detail::empty_strided(size, stride, dtype ? *dtype : c10::get_default_dtype(),
                               device_or(device, kMeta));
}

Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout,
                      std::optional<ScalarType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, std::optional<bool> pin_memory) {
  const int64_t n = static_cast<int64_t>(size.size());
  TORCH_CHECK(static_cast<int64_t>(physical_layout.size()) == n,
              "Number of dimensions in size does not match the length of the physical_layout; i.e. "
              "len(size) = ",
              n, " is not equal to len(physical_layout) = ", physical_layout.size());
  DimVector strides(n);
  std::vector<bool> seen(n);
  int64_t step = 1;
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t dim = physical_layout[i];
    TORCH_CHECK(dim >= 0 && dim < n, "Dimension out of range (expected to be between 0 and ", n - 1,
                ", but got ", dim, " at index ", i,
                "). NB: negative dims not currently supported.");
    TORCH_CHECK(!seen[dim], "Duplicate dim not allowed");
    seen[dim] = true;
    strides[dim] = step;
    __builtin_mul_overflow(step, std::max<int64_t>(size[dim], 1), &step);
  }
  return at::empty_strided(size, strides, dtype, layout, device, pin_memory);
}

SymDimVector symbolic_dense_strides(const Tensor& self) {
  const SymIntArrayRef sizes = self.sym_sizes(), strides = self.sym_strides();
  if (self.is_non_overlapping_and_dense()) return SymDimVector(strides);
  DimVector order;
  for (int64_t d = self.dim() - 1; d >= 0; --d) order.push_back(d);
  const auto hint = [](const SymInt& n) { return n.hint().value_or(0); };
  // Insertion, as the iterator of real tensors sorts: a stride of 0 says nothing.
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t k = i; k-- > 0;) {
      const int64_t a = hint(strides[order[k]]), b = hint(strides[order[at]]);
      if (a == 0 || b == 0) continue;
      if (a < b || (a == b && hint(sizes[order[k]]) <= hint(sizes[order[at]]))) break;
      std::swap(order[k], order[at]);
      at = k;
    }
  }
  SymDimVector out(sizes.size());
  SymInt step = 1;
  for (int64_t d : order) {
    out[d] = step;
    step = step * sizes[d];
  }
  return out;
}

Tensor empty_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  check_layout("empty_like", layout);
  const ScalarType type = dtype ? *dtype : self.scalar_type();
  const Device where = device ? *device : self.device();
  const MemoryFormat format = memory_format ? *memory_format : MemoryFormat::Preserve;
  if (format != MemoryFormat::Preserve)
    return at::empty_symint(self.sym_sizes(), type, kStrided, where, pin_memory, format);
  if (is_symbolic(self))
    return at::empty_strided_symint(self.sym_sizes(), symbolic_dense_strides(self), type, kStrided,
                                    where, pin_memory);
  if (self.is_contiguous() && self.is_non_overlapping_and_dense() && where.is_cpu() &&
      !pin_memory && c10::tls_dispatch_keys.included == 0)
    return settled(detail::empty_strided(self.sizes(), self.strides(), type, where));
  return at::empty_strided(self.sizes(), c10::infer_dense_strides(self.sizes(), self.strides()),
                           type, kStrided, where, pin_memory);
}

Tensor new_empty(const Tensor& self, SymIntArrayRef size, std::optional<ScalarType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin_memory) {
  return at::empty_symint(size, dtype ? *dtype : self.scalar_type(), layout,
                          device ? *device : self.device(), pin_memory, std::nullopt);
}
Tensor new_empty_strided(const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride,
                         std::optional<ScalarType> dtype, std::optional<Layout> layout,
                         std::optional<Device> device, std::optional<bool> pin_memory) {
  return at::empty_strided_symint(size, stride, dtype ? *dtype : self.scalar_type(), layout,
                                  device ? *device : self.device(), pin_memory);
}
Tensor new_full(const Tensor& self, SymIntArrayRef size, const Scalar& value,
                std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory) {
  return unwritten(
      at::native::new_empty(self, size, dtype, layout, device, pin_memory).fill_(value));
}
Tensor new_zeros(const Tensor& self, SymIntArrayRef size, std::optional<ScalarType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin_memory) {
  return unwritten(at::native::new_empty(self, size, dtype, layout, device, pin_memory).zero_());
}
Tensor new_ones(const Tensor& self, SymIntArrayRef size, std::optional<ScalarType> dtype,
                std::optional<Layout> layout, std::optional<Device> device,
                std::optional<bool> pin_memory) {
  return unwritten(at::native::new_empty(self, size, dtype, layout, device, pin_memory).fill_(1));
}

Tensor zeros(SymIntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory) {
  for (const SymInt s : size)
    TORCH_CHECK(c10::expect_true(c10::sym_ge(s, 0)), "zeros: Dimension size must be non-negative.");
  return unwritten(at::empty_symint(size, dtype, layout, device, pin_memory, std::nullopt).zero_());
}
Tensor ones(SymIntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
            std::optional<Device> device, std::optional<bool> pin_memory) {
  return unwritten(
      at::empty_symint(size, dtype, layout, device, pin_memory, std::nullopt).fill_(1));
}
Tensor full(SymIntArrayRef size, const Scalar& value, std::optional<ScalarType> dtype,
            std::optional<Layout> layout, std::optional<Device> device,
            std::optional<bool> pin_memory) {
  ScalarType type = dtype ? *dtype : value.type();
  if (!dtype && value.isFloatingPoint()) type = c10::get_default_dtype();
  // Half precision is too narrow to be chosen for a number.
  if (!dtype && value.isComplex())
    type = c10::get_default_dtype() == kDouble ? kComplexDouble : kComplexFloat;
  return unwritten(
      at::empty_symint(size, type, layout, device, pin_memory, std::nullopt).fill_(value));
}
Tensor zeros_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  return unwritten(at::empty_like(self, dtype, layout, device, pin_memory, memory_format).zero_());
}
Tensor ones_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin_memory,
                 std::optional<MemoryFormat> memory_format) {
  return unwritten(at::empty_like(self, dtype, layout, device, pin_memory, memory_format).fill_(1));
}
Tensor full_like(const Tensor& self, const Scalar& value, std::optional<ScalarType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  return unwritten(
      at::empty_like(self, dtype, layout, device, pin_memory, memory_format).fill_(value));
}
Tensor scalar_tensor(const Scalar& s, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                     std::optional<Device> device, std::optional<bool> pin_memory) {
  return unwritten(
      at::empty(IntArrayRef(), dtype, layout, device, pin_memory, std::nullopt).fill_(s));
}

} // namespace at::native
