// Changing a tensor's geometry in place, growing its storage when needed.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {
// Row-major sizes; the storage grows through its allocator and never shrinks. Errors when the
// storage cannot be resized. Data that stays inside keeps its bytes.
TORCH_API void resize_contiguous(const Tensor& self, IntArrayRef sizes);
TORCH_API void resize_strided(const Tensor& self, IntArrayRef sizes, IntArrayRef strides);
} // namespace at::native

#ifndef CRESSET_KERNEL_TU
#include <ATen/native/ResizeUser.h>
#endif
