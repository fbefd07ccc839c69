// The inner loops of pooling, per instruction set: all windows of a row at once, one element of
// each window after the other, which leaves nothing to branch on.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::pool_rows {

// `count` windows, each `stride` elements after the one before. The first takes, of each line that
// begins at one of `lines` (places in the input plane), `taps` elements `step` apart.
struct RowShape {
  int64_t count, stride, taps, step, line_count;
  const int64_t* lines;
};

// out[i], where[i]: the largest element of window i, and its place in `plane`. NaN is larger than
// everything; among equals the first counts, among NaNs the last. Without `where` values only.
using MaxFn = void (*)(const RowShape& shape, const void* plane, void* out, int32_t* where);
// out[i]: the sum of window i, one element after the other.
using SumFn = void (*)(const RowShape& shape, const void* plane, void* out);

struct Table {
  MaxFn max[c10::NumScalarTypes] = {};
  SumFn sum[c10::NumScalarTypes] = {};
};

// For float and double only.
CRESSET_ISA_TABLE(Table);

} // namespace at::native::pool_rows
