// The loops of AttentionKernel.h: three passes over a row of scores that lies in the first-level
// cache.
#include <cmath>
#include <limits>

#include <ATen/native/attention/AttentionKernel.h>
#include <ATen/vec/ValueMath.h>

namespace at::native::attention_loops {
namespace CRESSET_ISA {
namespace {
using vec::Vec;

template <class A> A lanes_sum(Vec<A> v) {
  A lane[Vec<A>::kLanes];
  v.store(lane);
  for (int step = Vec<A>::kLanes / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) lane[i] += lane[i + step];
  return lane[0];
}

// The largest element, with the bias added to all on the way. NaN is passed over: it shows in the
// sum.
template <class A> A largest(A* x, int64_t n, const A* bias) {
  using V = Vec<A>;
  constexpr A kLowest = -std::numeric_limits<A>::infinity();
  V top(kLowest), other(kLowest);
  int64_t i = 0;
  if (bias) {
    for (; i + V::kLanes <= n; i += V::kLanes) {
      const V v = V::load(x + i) + V::load(bias + i);
      v.store(x + i);
      top = vec::select(v > top, v, top);
    }
  } else {
    for (; i + 2 * V::kLanes <= n; i += 2 * V::kLanes) {
      const V v = V::load(x + i), w = V::load(x + i + V::kLanes);
      top = vec::select(v > top, v, top);
      other = vec::select(w > other, w, other);
    }
  }
  A result = kLowest;
  for (; i < n; ++i) {
    if (bias) x[i] += bias[i];
    if (x[i] > result) result = x[i];
  }
  A lane[2 * V::kLanes];
  top.store(lane);
  other.store(lane + V::kLanes);
  for (A v : lane)
    if (v > result) result = v;
  return result;
}

template <class A>
double softmax(void* scores, int64_t n, const void* bias, double* top, double* sum) {
  using V = Vec<A>;
  A* x = static_cast<A*>(scores);
  const double before = *top;
  const double now = static_cast<double>(largest(x, n, static_cast<const A*>(bias)));
  const double highest = now > before ? now : before;
  const A shift = std::isinf(highest) && highest < 0 ? A(0) : static_cast<A>(highest);
  V a(A(0)), b(A(0));
  int64_t i = 0;
  for (; i + 2 * V::kLanes <= n; i += 2 * V::kLanes) {
    const V e = vm::exp(V::load(x + i) - V(shift)),
            f = vm::exp(V::load(x + i + V::kLanes) - V(shift));
    e.store(x + i);
    f.store(x + i + V::kLanes);
    a = a + e;
    b = b + f;
  }
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const V e = vm::exp(V::load(x + i) - V(shift));
    e.store(x + i);
    a = a + e;
  }
  A rest = 0;
  for (; i < n; ++i) {
    x[i] = vm::exp(x[i] - shift);
    rest += x[i];
  }
  const double factor = highest == before ? 1.0 : std::exp(before - static_cast<double>(shift));
  *sum = *sum * factor + static_cast<double>(lanes_sum(a + b) + rest);
  *top = highest;
  return factor;
}

template <class A> void scale(void* xp, int64_t n, double factor) {
  using V = Vec<A>;
  A* x = static_cast<A*>(xp);
  const A f = static_cast<A>(factor);
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) (V::load(x + i) * V(f)).store(x + i);
  for (; i < n; ++i) x[i] *= f;
}
} // namespace

const RowTable row_table = {{&softmax<float>, &scale<float>}, {&softmax<double>, &scale<double>}};

} // namespace CRESSET_ISA
} // namespace at::native::attention_loops
