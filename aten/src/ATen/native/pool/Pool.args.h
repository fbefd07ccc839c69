// The arguments of Pool.cuh: three dimensions (missing ones of size
// 1), windows given by a kernel or, without one, shared out evenly (adaptive), and where the planes
// of the two sides lie.
#pragma once
#include <ATen/cuda/device/Arguments.h>

namespace at::device {

struct PoolDimension {
  int64_t in, out, kernel, stride, padding, dilation; // no kernel: adaptive
  Divider by_in, by_out, by_stride;
  uint32_t unused; // fills the last word
};
// Distances in elements; positions of a plane lie in a row, `position` apart.
struct PoolPlanes {
  int64_t sample, channel, position;
};
struct PoolNumbers {
  PoolDimension axis[3];
  int64_t samples, channels;
  PoolPlanes large, small;
  int64_t divisor;                         // of means; 0: the elements of the window
  int64_t with_padding;                    // whether these include the padding
  int64_t channels_last;                   // threads take channels first
  Divider by_channels, by_large, by_small; // the last two: positions of a plane
  uint32_t unused;
};
CRESSET_LAYOUT(PoolDimension, 88, unused, 84);
CRESSET_LAYOUT(PoolPlanes, 24, position, 16);
CRESSET_LAYOUT(PoolNumbers, 392, unused, 388);

} // namespace at::device
