// Dimensions counted from the end, of tensors and lists.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/WrapDimMinimal.h>

namespace at {

using c10::maybe_wrap_dim;
inline int64_t maybe_wrap_dim(int64_t dim, const Tensor& tensor) {
  return maybe_wrap_dim(dim, tensor.dim());
}
inline void maybe_wrap_dims(std::vector<int64_t>& dims, int64_t ndim, bool wrap_scalar = true) {
  for (int64_t& dim : dims) dim = maybe_wrap_dim(dim, ndim, wrap_scalar);
}

} // namespace at
