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
  TORCH_CHECK(t.dim() <= MAX_TENSORINFO_DIMS, "getTensorInfo: tensors have at most ",
              MAX_TENSORINFO_DIMS, " dimensions here, got ", t.dim());
  IndexType sizes[MAX_TENSORINFO_DIMS] = {}, strides[MAX_TENSORINFO_DIMS] = {};
  for (int64_t d = 0; d < t.dim(); ++d) {
    sizes[d] = static_cast<IndexType>(t.size(d));
    strides[d] = static_cast<IndexType>(t.stride(d));
  }
  return TensorInfo<T, IndexType>(static_cast<T*>(t.data_ptr()), static_cast<int>(t.dim()), sizes,
                                  strides);
}

} // namespace at::cuda::detail
