// The arguments of Product.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// A sparse matrix of `rows` rows as starts and columns, beside dense ones of `width` columns.
struct SparseRows {
  const int64_t* starts;
  const int64_t* columns;
  int64_t rows, nnz;
  int64_t bound; // rows of the dense matrix
  int64_t width;
  IndexCheck check;
};
CRESSET_LAYOUT(SparseRows, 64, check, 48);

// Columns of the dense matrix that one warp works on.
inline constexpr int kSparseTile = 128;

} // namespace at::device
