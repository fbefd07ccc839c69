// The arguments of Symmetry.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

inline constexpr int kMirroredDims = 7;

struct SymmetryArgs {
  void* data;
  int64_t count;               // elements to fill, below 2^31
  int64_t batch;               // elements of one transform
  Divider missing;             // elements to fill in a row
  Divider size[kMirroredDims]; // of the dimensions before the last, innermost first
  int32_t mirrored;            // how many of these there are
  int32_t row;                 // elements of a row
  int32_t known;               // of these are there
};
CRESSET_LAYOUT(SymmetryArgs, 136, known, 128);

} // namespace at::device
