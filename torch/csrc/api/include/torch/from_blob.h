// Tensors on memory that belongs to someone else.
#pragma once
#include <ATen/from_blob.h>
#include <torch/csrc/autograd/variable.h>

namespace torch {

namespace detail {
inline at::Tensor blob_as_wanted(at::Tensor made, const at::TensorOptions& options) {
  if (options.requires_grad()) autograd::set_requires_grad(made, true);
  return made;
}
} // namespace detail

using Deleter = std::function<void(void*)>;

inline at::Tensor from_blob(void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                            const Deleter& deleter, const at::TensorOptions& options = {}) {
  return detail::blob_as_wanted(at::from_blob(data, sizes, strides, deleter, options), options);
}
inline at::Tensor from_blob(void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                            const at::TensorOptions& options = {}) {
  return detail::blob_as_wanted(at::from_blob(data, sizes, strides, options), options);
}
inline at::Tensor from_blob(void* data, at::IntArrayRef sizes, const Deleter& deleter,
                            const at::TensorOptions& options = {}) {
  return detail::blob_as_wanted(at::from_blob(data, sizes, deleter, options), options);
}
inline at::Tensor from_blob(void* data, at::IntArrayRef sizes,
                            const at::TensorOptions& options = {}) {
  return detail::blob_as_wanted(at::from_blob(data, sizes, options), options);
}

} // namespace torch
