// The arguments of Transpose.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

inline constexpr int kTileDims = 10;

struct TransposeArgs {
  void* out;
  const void* in;
  int64_t rows, columns; // out[r][c] with c contiguous, in[r][c] with r contiguous
  int64_t out_row;       // bytes from one row of out to the next
  int64_t in_column;     // bytes from one column of in to the next
  int32_t ndim;          // of the matrices, one after the other
  Divider size[kTileDims];
  int64_t out_stride[kTileDims], in_stride[kTileDims];
};
CRESSET_LAYOUT(TransposeArgs, 336, in_stride, 256);

} // namespace at::device
