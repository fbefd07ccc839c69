// The arguments of CtcLoss.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

struct CtcArgs {
  const int64_t *targets, *offsets; // where a sample's labels begin
  const int64_t *input_lengths, *target_lengths;
  int64_t samples, frames, classes, states; // states: of the longest target
  int64_t blank;
};
CRESSET_LAYOUT(CtcArgs, 72, blank, 64);

} // namespace at::device
