// The ground floor of factories: an uninitialised dense tensor, without the dispatcher. Kernels use
// these for their outputs and temporaries; users reach them through at::empty.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::detail {

TORCH_API Tensor empty(IntArrayRef sizes, ScalarType dtype, Device device = Device(kCPU));
TORCH_API Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype,
                               Device device = Device(kCPU));
// A 0-dim CPU tensor with the value, as a wrapped number when asked.
TORCH_API Tensor scalar_tensor(const Scalar& value, ScalarType dtype);
TORCH_API Tensor wrapped_number(const Scalar& value);

// ---- views
// The one checked constructor: a view with this geometry on the storage of `base`. Errors when a
// size is negative, ranks differ, or an element would lie outside the storage. Everything that
// builds a tensor from outside numbers (as_strided, set_, files, DLPack, buffers) comes through
// here.
TORCH_API Tensor checked_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides,
                              int64_t storage_offset);
// The same on a storage of its own, not a view of any tensor.
TORCH_API Tensor checked_tensor(const Storage& storage, ScalarType dtype, IntArrayRef sizes,
                                IntArrayRef strides, int64_t storage_offset);
// Throws unless `sizes`/`strides`/offset stay inside `storage_bytes`.
TORCH_API void check_in_bounds(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset,
                               int64_t itemsize, size_t storage_bytes);

// A view whose geometry the caller derived from `self` itself (select, transpose, ...), so that it
// is in bounds by construction. Shares the version counter and records the base.
TORCH_API Tensor view_of(const Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                         int64_t storage_offset);
// The same with another element type (view.dtype, view_as_real, ...): offset in elements of
// `dtype`.
TORCH_API Tensor view_of_dtype(const Tensor& self, ScalarType dtype, IntArrayRef sizes,
                               IntArrayRef strides, int64_t storage_offset);

} // namespace at::detail
