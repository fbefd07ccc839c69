// Making tensors on the allocator of another package: what kernels of aten::empty and
// aten::empty_strided of a backend call. The device is the one the allocator's memory is on.
#pragma once
#include <ATen/core/EmptyTensor.h>
#include <c10/core/AllocatorUser.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorOptions.h>

namespace at::detail {

using at::make_tensor;

inline void check_size_nonnegative(IntArrayRef sizes) {
  for (const int64_t size : sizes)
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
}

// Bytes that a storage needs for these elements. Error where the number does not fit.
inline size_t computeStorageNbytes(IntArrayRef sizes, IntArrayRef strides, size_t itemsize,
                                   size_t storage_offset = 0) {
  return static_cast<size_t>(c10::checked_storage_bytes(
      sizes, strides, static_cast<int64_t>(itemsize), static_cast<int64_t>(storage_offset)));
}
inline size_t computeStorageNbytesContiguous(IntArrayRef sizes, size_t itemsize,
                                             size_t storage_offset = 0) {
  int64_t bytes = 0;
  if (c10::mul_overflows(c10::checked_numel(sizes) + static_cast<int64_t>(storage_offset),
                         static_cast<int64_t>(itemsize), &bytes))
    c10::throw_size_overflow(sizes);
  return static_cast<size_t>(bytes);
}

inline Tensor empty_strided_generic(IntArrayRef sizes, IntArrayRef strides,
                                    c10::Allocator* allocator, c10::DispatchKeySet keys,
                                    ScalarType dtype) {
  check_size_nonnegative(sizes);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  const size_t bytes =
      computeStorageNbytes(sizes, strides, static_cast<size_t>(c10::elementSize(dtype)));
  auto storage =
      c10::make_intrusive<c10::StorageImpl>(bytes, allocator->allocate(bytes), allocator, true);
  Tensor out = make_tensor<c10::TensorImpl>(storage, keys, dtype, storage->device());
  out.unsafeGetTensorImpl()->set_geometry(sizes, strides, 0);
  return out;
}

inline Tensor empty_generic(IntArrayRef sizes, c10::Allocator* allocator, c10::DispatchKeySet keys,
                            ScalarType dtype, std::optional<MemoryFormat> memory_format) {
  check_size_nonnegative(sizes);
  if (!memory_format || *memory_format == MemoryFormat::Contiguous) {
    c10::checked_numel(sizes);
    return empty_strided_generic(sizes, c10::contiguous_strides(sizes), allocator, keys, dtype);
  }
  TORCH_CHECK(*memory_format != MemoryFormat::Preserve,
              "unsupported memory format: preserve_format needs a tensor to follow");
  const size_t rank = *memory_format == MemoryFormat::ChannelsLast ? 4 : 5;
  TORCH_CHECK(sizes.size() == rank, "required rank ", rank, " tensor to use ", *memory_format,
              " format");
  return empty_strided_generic(sizes, c10::channels_last_strides(sizes), allocator, keys, dtype);
}

} // namespace at::detail
