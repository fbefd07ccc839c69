// The arguments of Fold.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// Windows over planes of height x width. The columns of a plane are kernel[0] x kernel[1] rows of
// out[0] x out[1] elements.
struct FoldArgs {
  int64_t planes, height, width;
  int64_t kernel[2], out[2], stride[2], padding[2], dilation[2];
  int64_t small; // the columns have fewer than 2^31 elements
};
CRESSET_LAYOUT(FoldArgs, 112, small, 104);

} // namespace at::device
