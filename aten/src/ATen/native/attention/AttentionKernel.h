// The row loops of the blocked attention kernel, by element type (float and double).
#pragma once
#include <cstdint>

namespace at::native::attention_loops {

struct RowLoops {
  // One row of scores, n of them: adds `bias` (n values, or null), replaces each score by
  // exp(score - top) where *top is the largest score so far, adds them to *sum and returns the
  // factor exp(old top - new top) by which everything gathered before has to be multiplied; *sum
  // has been. A row in which nothing is above -inf has the top -inf and gathers zeros.
  double (*softmax)(void* scores, int64_t n, const void* bias, double* top, double* sum);
  // x *= factor
  void (*scale)(void* x, int64_t n, double factor);
};
struct RowTable {
  RowLoops f32, f64;
};
namespace base {
extern const RowTable row_table;
}
namespace avx2 {
extern const RowTable row_table;
}
namespace avx512 {
extern const RowTable row_table;
}

} // namespace at::native::attention_loops
