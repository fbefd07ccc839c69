// The inner loop of embedding_bag, per instruction set: the sum of some rows of a table.
#pragma once
#include <cstdint>

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

namespace base {
void fill(Table& table);
}
namespace avx2 {
void fill(Table& table);
}
namespace avx512 {
void fill(Table& table);
}

// Of the machine's instruction set; float and double only.
const Table& table();

} // namespace at::native::bag_rows
