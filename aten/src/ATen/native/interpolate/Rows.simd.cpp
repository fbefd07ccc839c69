// The loops of Rows.h: registers, then single values at the end of a row.
#include <ATen/native/interpolate/Rows.h>
#include <ATen/vec/Vec.h>

namespace at::native::interpolate {
namespace CRESSET_ISA {
namespace {
using vec::Vec;

template <class A> void two(A* to, const A* x, const A* y, A a, A b, int64_t n) {
  using V = Vec<A>;
  const V va(a), vb(b);
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes)
    (va * V::load(x + i) + vb * V::load(y + i)).store(to + i);
  for (; i < n; ++i) to[i] = a * x[i] + b * y[i];
}

template <class A> void add(A* to, const A* from, A weight, int64_t n, bool first) {
  using V = Vec<A>;
  const V w(weight);
  int64_t i = 0;
  if (first) {
    for (; i + V::kLanes <= n; i += V::kLanes) (w * V::load(from + i)).store(to + i);
    for (; i < n; ++i) to[i] = weight * from[i];
    return;
  }
  for (; i + V::kLanes <= n; i += V::kLanes)
    (V::load(to + i) + w * V::load(from + i)).store(to + i);
  for (; i < n; ++i) to[i] += weight * from[i];
}

} // namespace

RowLoops<float> float_rows() { return {&two<float>, &add<float>}; }
RowLoops<double> double_rows() { return {&two<double>, &add<double>}; }

} // namespace CRESSET_ISA
} // namespace at::native::interpolate
