// The arguments of Range.cuh: what the elements of a range are, as numbers.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

struct RangeArgs {
  enum Kind : int32_t { Whole, Floating, Linear, Logarithmic };
  void* out = nullptr;
  int64_t n = 0;
  int32_t kind = Whole;
  int64_t first = 0, by = 0;                 // Whole: first + i * by
  double start = 0, step = 0;                // Floating: start + i * step
  double from[2] = {}, to[2] = {}, base = 0; // the ends, real and imaginary part
};
CRESSET_LAYOUT(RangeArgs, 96, base, 88);

} // namespace at::device
