// The arguments of SegmentReduce.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

struct SegmentArgs {
  const int64_t *begin, *end; // of every segment, along the cut dimension
  int64_t segments, count;    // all of them, and those of one line
  int64_t size, inner;        // of the cut dimension, and of what lies inside it
  double initial;
  int32_t op; // 0: sum, 1: mean, 2: max, 3: min, 4: product
  int32_t has_initial;
};
CRESSET_LAYOUT(SegmentArgs, 64, has_initial, 60);

} // namespace at::device
