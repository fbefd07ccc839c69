// The inner loop of embedding_bag, per instruction set: the sum of some rows of a table.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::bag_rows {

// out[j] = the sum over i < count of scale[i] * table[index[i] * width + j], in the
// order of i, over their number where `mean`; rows whose index is `padding` are left out and
// `scale` may be null: all ones.
// `table`, `scale` and `out` are of the function's type. Returns how many rows were added.
using SumFn = int64_t (*)(const void* table, int64_t width, const int64_t* index, int64_t count,
                          const void* scale, int64_t padding, bool mean, void* out);

struct Table {
  SumFn sum[c10::NumScalarTypes] = {};
};

// For float and double only.
CRESSET_ISA_TABLE(Table);

} // namespace at::native::bag_rows
