// The makers of EmptyTensor.h for sizes that may be symbolic. Only tensors without memory have
// symbolic sizes: on another device than meta the sizes are guarded to be plain.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::detail {

TORCH_API Tensor empty_symint(SymIntArrayRef sizes, ScalarType dtype, Device device);
TORCH_API Tensor empty_strided_symint(SymIntArrayRef sizes, SymIntArrayRef strides,
                                      ScalarType dtype, Device device);
TORCH_API Tensor view_of_symint(const Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides,
                                SymInt storage_offset);

} // namespace at::detail
