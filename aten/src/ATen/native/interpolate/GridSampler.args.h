// The arguments of GridSampler.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

struct GridSamplerArgs {
  int64_t batch, channels, points;
  int64_t size[3]; // of the input: depth, height, width; two dimensions use the last two
  int32_t dims;    // 2 or 3
  int32_t mode;    // 0: linear, 1: nearest, 2: cubic
  int32_t padding; // 0: zeros, 1: border, 2: reflection
  int32_t align_corners;
  int64_t small; // there are fewer than 2^31 threads
};
CRESSET_LAYOUT(GridSamplerArgs, 72, small, 64);

} // namespace at::device
