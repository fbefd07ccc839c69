// The reductions of index_reduce and scatter_reduce by name, with what each starts from.
#pragma once
#include <ATen/native/index/RowWalk.h>

#include <string_view>

namespace at::native {

enum class Reduction : uint8_t { Sum, Prod, Mean, Max, Min };

// Names "sum", "prod", "mean", "amax", "amin"; Error for others.
Reduction parse_reduction(std::string_view name);
// A 0-dim tensor with the value that leaves the other operand as it is.
Tensor reduction_identity(Reduction kind, ScalarType dtype);
// Mean sums; divide_by_counts follows.
RowLoops reduction_loops(Reduction kind, ScalarType dtype, const char* name);
// self /= max(counts, 1) element by element, rounding integers down. counts (int64) broadcasts.
void divide_by_counts(const Tensor& self, const Tensor& counts);

} // namespace at::native
