// The arguments of NllLoss.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// Positions in (sample, row, column) order over a tensor of (sample, class, row, column).
struct NllWalk {
  int64_t count, classes, rows, columns;
  int64_t sample_stride, class_stride, row_stride, column_stride;
#if defined(CRESSET_DEVICE)
  CRESSET_DEVICE_FN int64_t offset(int64_t i) const {
    if (rows * columns == 1) return i * sample_stride;
    const int64_t rest = i / columns;
    return rest / rows * sample_stride + rest % rows * row_stride + i % columns * column_stride;
  }
#endif
};
CRESSET_LAYOUT(NllWalk, 64, column_stride, 56);

} // namespace at::device
