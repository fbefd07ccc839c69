// Sorting on CUDA for other operators: 64-bit keys with 32-bit values, in rows, stable. Runs on the
// current device and stream.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native {

struct SortedRows {
  Tensor keys;   // int64 memory holding unsigned keys, (rows, n), ascending
  Tensor values; // int32 memory holding unsigned values: positions in the row unless given
};

// Sorts `keys` (int64, (rows, n), contiguous, overwritten) by their lowest `bits` bits. `values`
// (int32, same shape, contiguous, overwritten) go along when defined.
SortedRows radix_sort_cuda(const Tensor& keys, const Tensor& values, int bits);

} // namespace at::native
