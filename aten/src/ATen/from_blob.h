// Tensors on memory that belongs to someone else. The memory must outlive the tensor; a deleter is
// called with `data` when the last tensor on it goes.
#pragma once
#include <functional>

#include <ATen/core/Tensor.h>

namespace at {

namespace detail {
// `strides` empty: row-major. Errors where sizes are negative or ranks differ.
TORCH_API Tensor blob(void* data, IntArrayRef sizes, std::optional<IntArrayRef> strides,
                      int64_t storage_offset, std::function<void(void*)> deleter,
                      const TensorOptions& options);
} // namespace detail

inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return detail::blob(data, sizes, std::nullopt, 0, nullptr, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  return detail::blob(data, sizes, std::nullopt, 0, deleter, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {}) {
  return detail::blob(data, sizes, strides, 0, nullptr, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  return detail::blob(data, sizes, strides, 0, deleter, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset,
                        const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  return detail::blob(data, sizes, strides, storage_offset, deleter, options);
}

} // namespace at
