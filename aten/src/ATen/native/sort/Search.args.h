// The arguments of Search.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// One row for all values, or a row for every `per_row` of them.
struct SearchArgs {
  const void* rows;
  const int64_t* order; // null: the rows are sorted as they lie
  const void* values;
  void* out;
  int64_t count, per_row, n;
  int32_t one_row, right, narrow;
  IndexCheck check;
};
CRESSET_LAYOUT(SearchArgs, 88, check, 72);

} // namespace at::device
