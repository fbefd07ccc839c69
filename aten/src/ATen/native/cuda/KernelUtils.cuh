// Additions into tensors from many threads, under the names that kernels of extensions use.
#pragma once
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/detail/KernelUtils.h>

namespace at::native {

// data[index] += value. The number of elements bounds nothing here: a 16-bit element is updated
// within its aligned word of four bytes, which device allocations always contain whole.
template <class T, class Index> __device__ inline void
fastAtomicAdd(T* data, Index index, Index /*numel*/, T value, bool /*fast*/) {
  gpuAtomicAdd(data + index, value);
}

} // namespace at::native
