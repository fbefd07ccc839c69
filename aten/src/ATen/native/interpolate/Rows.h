// Weighted sums of rows, the inner loops of resizing, compiled for each instruction set.
#pragma once
#include <cstdint>

namespace at::native::interpolate {

// Rows of n values; `to` overlaps no source.
template <class A> struct RowLoops {
  // to = a x + b y
  void (*two)(A* to, const A* x, const A* y, A a, A b, int64_t n);
  // to += weight * from, or to = weight * from when it is the first.
  void (*add)(A* to, const A* from, A weight, int64_t n, bool first);
};

namespace base {
RowLoops<float> float_rows();
RowLoops<double> double_rows();
} // namespace base
namespace avx2 {
RowLoops<float> float_rows();
RowLoops<double> double_rows();
} // namespace avx2
namespace avx512 {
RowLoops<float> float_rows();
RowLoops<double> double_rows();
} // namespace avx512

} // namespace at::native::interpolate
