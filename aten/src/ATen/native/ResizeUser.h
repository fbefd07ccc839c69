// Changes of geometry as kernels of other packages make them, on the object behind a tensor.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>

namespace at::native {

// Grows the storage to `bytes`; never shrinks it.
inline void maybe_resize_storage_cpu(c10::TensorImpl* self, size_t bytes) {
  if (self->numel() == 0) return;
  TORCH_CHECK(self->has_storage(), "Tensor: invalid null storage");
  if (bytes > self->storage()->nbytes()) self->storage()->resize(bytes);
}

inline c10::TensorImpl* resize_impl_cpu_(c10::TensorImpl* self, IntArrayRef sizes,
                                         c10::OptionalIntArrayRef strides,
                                         bool resize_storage = true) {
  TORCH_CHECK(resize_storage, "resize_impl_cpu_: a geometry beyond the storage is refused");
  const Tensor tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_retain(self));
  if (strides)
    resize_strided(tensor, sizes, *strides);
  else
    resize_contiguous(tensor, sizes);
  return self;
}

// Gives an output the sizes of a result. Returns whether it had others.
inline bool resize_output(const Tensor& output, IntArrayRef sizes) {
  if (output.sizes() == sizes) return false;
  resize_contiguous(output, sizes);
  return true;
}

} // namespace at::native
