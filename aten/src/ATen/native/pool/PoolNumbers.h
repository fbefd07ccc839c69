// The numbers of one pooling as device programs take them: three dimensions (missing ones of size
// 1), windows given by a kernel or, without one, shared out evenly (adaptive), and where the planes
// of the two sides lie.
#pragma once
#include <cstddef>
#include <cstdint>

namespace at::native {

struct PoolDimension {
  int64_t in, out, kernel, stride, padding, dilation; // no kernel: adaptive
};
// Distances in elements; positions of a plane lie in a row, `position` apart.
struct PoolPlanes {
  int64_t sample, channel, position;
};
struct PoolNumbers {
  PoolDimension axis[3];
  int64_t samples, channels;
  PoolPlanes large, small;
  int64_t divisor;       // of means; 0: the elements of the window
  int64_t with_padding;  // whether these include the padding
  int64_t channels_last; // threads take channels first
};
static_assert(sizeof(PoolNumbers) == 29 * 8 && offsetof(PoolNumbers, samples) == 18 * 8 &&
              offsetof(PoolNumbers, divisor) == 26 * 8);

} // namespace at::native
