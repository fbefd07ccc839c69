// The arguments of Triangle.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

struct TriangleArgs {
  void* out;
  const void* in;
  int64_t n;      // steps: packs where `packed`, elements otherwise; below 2^31
  Divider across; // steps per row
  Divider rows;
  int64_t diagonal;
  int32_t upper; // 0: columns j of row i with j - i <= diagonal stay, 1: those with >= diagonal
  int32_t packed;
};
CRESSET_LAYOUT(TriangleArgs, 64, packed, 60);

} // namespace at::device
