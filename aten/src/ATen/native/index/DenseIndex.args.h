// The arguments of DenseIndex.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

struct DenseIndex {
  const int64_t* index;
  int64_t columns;        // outer * inner
  int64_t row, other_row; // n * inner, and the same of the indexed tensor
  int64_t bound;
  int32_t n, inner;
  int32_t dim;
  uint32_t row_blocks; // gather: blocks per row
  Divider inner_size;
  IndexCheck check;
};
CRESSET_LAYOUT(DenseIndex, 88, check, 72);

inline constexpr int kDenseThreads = 256, kDenseAhead = 8;

} // namespace at::device
