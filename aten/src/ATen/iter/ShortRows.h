// Rows too short to be worth a call each, as of x[n, 3] + b[3] or of x[n, 8] * c[n, 1]: many of
// them go to the loop as one. An operand that lies flush is passed as it is; another is copied,
// element by element or as a pattern that repeats, into a buffer that stays in the first-level
// cache.
#pragma once
#include <ATen/iter/LoopTable.h>
#include <c10/util/ArrayRef.h>

namespace at::iter {

// One operand of the loop: strides in bytes, innermost first; size of an element in bytes.
struct RowOperand {
  char* data;
  const int64_t* strides;
  int size;
  bool is_output;
};

// Whether rows of this shape (innermost first) gain by going together.
bool rows_are_short(c10::IntArrayRef shape, c10::ArrayRef<RowOperand> operands);

// Runs the loop on the elements [begin, end) of the linear index. rows_are_short holds.
void run_short_rows(native::Loop1d loop, const void* params, c10::IntArrayRef shape,
                    c10::ArrayRef<RowOperand> operands, int64_t begin, int64_t end);

} // namespace at::iter
