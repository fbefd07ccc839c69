// The arguments of Cat.cuh: blocks of rows, in units of the largest size that divides them all.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

inline constexpr int kCatInputs = 96;

struct CatTable {
  const void* data[kCatInputs];
  int64_t width[kCatInputs];  // units per row
  int64_t offset[kCatInputs]; // of the block in the row
  int64_t rows, row;
};
CRESSET_LAYOUT(CatTable, 2320, row, 2312);

} // namespace at::device
