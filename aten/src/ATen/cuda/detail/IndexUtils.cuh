// Descriptions of tensors for kernels, and whether 32-bit offsets reach all elements.
#pragma once
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/detail/TensorInfo.cuh>

namespace at::cuda::detail {

inline bool canUse32BitIndexMath(const Tensor& t,
                                 int64_t max_elem = std::numeric_limits<int32_t>::max()) {
  if (t.numel() == 0) return max_elem > 0;
  if (t.numel() >= max_elem) return false;
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return last < max_elem;
}

template <class T, class IndexType> TensorInfo<T, IndexType> getTensorInfo(const Tensor& t) {
  return TensorInfo<T, IndexType>(static_cast<T*>(t.data_ptr()), t.sizes(), t.strides());
}

} // namespace at::cuda::detail
