// How many blocks a kernel with one thread per element needs, and its loop.
#pragma once
#include <cstdint>
#include <limits>

#include <c10/util/Exception.h>

// `i` goes through 0 .. n-1 in steps of the whole grid, so any number of blocks is right.
#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                                    \
  for (int64_t cresset_##i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; cresset_##i < (n);    \
       cresset_##i += int64_t(blockDim.x) * gridDim.x)                                             \
    if (const index_type i = static_cast<index_type>(cresset_##i); true)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

namespace at::cuda::detail {

constexpr int CUDA_NUM_THREADS = 1024;

inline int GET_BLOCKS(const int64_t n, const int64_t threads_per_block = CUDA_NUM_THREADS) {
  TORCH_CHECK(n > 0, "CUDA kernel launch blocks must be positive, but got N=", n);
  const int64_t blocks = (n - 1) / threads_per_block + 1;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(blocks < kMost ? blocks : kMost);
}

} // namespace at::cuda::detail
