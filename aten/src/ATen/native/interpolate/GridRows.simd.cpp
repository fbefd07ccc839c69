// The loops of GridRows.h. A coordinate in [-1, 1] becomes a position among the elements, is
// brought inside by the padding rule, and takes its neighbours along each axis; the taps are the
// products. Compiled without contraction: which neighbour a point takes must not depend on the
// machine.
#include <ATen/native/interpolate/GridRows.h>
#include <ATen/vec/ValueMath.h>

#include <cstring>

namespace at::native::interpolate {
namespace CRESSET_ISA {
namespace {
using vec::int_of;
using vec::Mask;
using vec::select;
using vec::Vec;

template <class A> C10_ALWAYS_INLINE Vec<int_of<A>> whole_of(Vec<A> x) {
  return __builtin_convertvector(x.v, typename Vec<int_of<A>>::Raw);
}

// plane[index], and 0 where the index is negative.
template <class A> C10_ALWAYS_INLINE Vec<A> gather(const A* plane, Vec<int_of<A>> index) {
#if defined(__AVX512F__) && !defined(__clang__)
  if constexpr (sizeof(A) == sizeof(float)) {
    const auto inside = static_cast<short>(~__builtin_ia32_cvtd2mask512(index.v));
    return __builtin_ia32_gathersiv16sf(typename Vec<A>::Raw{}, plane, index.v, inside, 4);
  } else {
    typedef long long Places __attribute__((vector_size(64)));
    const auto inside = static_cast<char>(~__builtin_ia32_cvtq2mask512((Places)index.v));
    return __builtin_ia32_gatherdiv8df(typename Vec<A>::Raw{}, plane, (Places)index.v, inside, 8);
  }
#elif defined(__AVX2__) && !defined(__clang__)
  typedef typename Vec<A>::Raw Values;
  if constexpr (sizeof(A) == sizeof(float)) {
    return __builtin_ia32_gathersiv8sf(Values{}, plane, index.v, (Values)~index.v, 4);
  } else {
    typedef long long Places __attribute__((vector_size(32)));
    return __builtin_ia32_gatherdiv4df(Values{}, plane, (Places)index.v, (Values)~index.v, 8);
  }
#else
  Vec<A> r;
  for (int i = 0; i < Vec<A>::kLanes; ++i) r.v[i] = index.v[i] < 0 ? A(0) : plane[index.v[i]];
  return r;
#endif
}

// A position and its derivative by the coordinate.
template <class A> struct Position { Vec<A> spot, slope; };

template <class A>
C10_ALWAYS_INLINE Position<A> unnormalized(Vec<A> x, int64_t size, bool align_corners) {
  const Vec<A> factor(static_cast<A>(align_corners ? size - 1 : size) / 2);
  const Vec<A> spot = (x + Vec<A>(A(1))) * factor;
  return {align_corners ? spot : spot - Vec<A>(A(0.5)), factor};
}

template <class A> C10_ALWAYS_INLINE void clip(Position<A>& p, int64_t size) {
  const Vec<A> most(static_cast<A>(size - 1)), zero(A(0));
  const Mask<A> inside = (p.spot > zero) & (p.spot < most);
  p.slope = select(inside, p.slope, zero);
  p.spot = select(inside, p.spot, select(p.spot >= most, most, zero));
}

// Mirrored at low / 2 and high / 2 until it lies between.
template <class A> C10_ALWAYS_INLINE void reflect(Position<A>& p, int64_t low, int64_t high) {
  const Vec<A> zero(A(0)), two(A(2));
  if (low == high) {
    p = {zero, zero};
    return;
  }
  const Vec<A> least(static_cast<A>(low) / 2), span(static_cast<A>(high - low) / 2);
  const Vec<A> moved = p.spot - least, x = vm::abs(moved);
  const Vec<A> flips = vm::floor(x / span), rest = vm::fma(-flips, span, x);
  const Mask<A> odd = flips - two * vm::floor(flips * Vec<A>(A(0.5))) != zero;
  p.spot = select(odd, span - rest, rest) + least;
  p.slope = select(odd ^ (moved < zero), -p.slope, p.slope);
}

template <class A>
C10_ALWAYS_INLINE Position<A> padded(Position<A> p, const GridGeometry& g, int64_t size) {
  if (g.padding == GridPadding::Reflection)
    reflect(p, g.align_corners ? 0 : -1, g.align_corners ? 2 * (size - 1) : 2 * size - 1);
  if (g.padding != GridPadding::Zeros) clip(p, size);
  // What no index holds lies outside.
  p.spot = select(vm::abs(p.spot) < Vec<A>(A(1e9)), p.spot, Vec<A>(A(-100)));
  return p;
}

// The elements along one axis with weights and slopes; a negative index is outside.
template <class A> struct AxisTaps {
  Vec<int_of<A>> index[4];
  Vec<A> weight[4], slope[4];

  C10_ALWAYS_INLINE void set(int t, Vec<int_of<A>> i, int64_t size, Vec<A> w, Vec<A> s) {
    using I = Vec<int_of<A>>;
    index[t] = select(i < I(static_cast<int_of<A>>(size)), i, I(int_of<A>(-1)));
    weight[t] = w;
    slope[t] = s;
  }
};

// Weight and slope of the cubic convolution kernel at distance x, slope -0.75 at 1.
template <class A> C10_ALWAYS_INLINE void cubic_weight(Vec<A> x, Vec<A>& weight, Vec<A>& slope) {
  using V = Vec<A>;
  const V d = vm::abs(x), one(A(1));
  const Mask<A> far = d > one;
  const V near_weight = (V(A(1.25)) * d - V(A(2.25))) * d * d + one;
  const V far_weight = ((V(A(-0.75)) * d + V(A(3.75))) * d - V(A(6))) * d + V(A(3));
  const V near_slope = (V(A(3.75)) * d - V(A(4.5))) * d;
  const V far_slope = (V(A(-2.25)) * d + V(A(7.5))) * d - V(A(6));
  weight = select(far, far_weight, near_weight);
  const V steep = select(far, far_slope, near_slope);
  slope = select(x < V(A(0)), -steep, steep);
}

template <class A, GridMode kMode>
C10_ALWAYS_INLINE AxisTaps<A> axis_taps(const GridGeometry& g, Vec<A> x, int64_t size) {
  using V = Vec<A>;
  AxisTaps<A> out;
  Position<A> p = unnormalized(x, size, g.align_corners);
  if constexpr (kMode == GridMode::Cubic) {
    p.spot = select(vm::abs(p.spot) < V(A(1e9)), p.spot, V(A(-100)));
    const V whole = vm::floor(p.spot), rest = p.spot - whole;
    for (int t = 0; t < 4; ++t) {
      V weight, slope;
      const V step(static_cast<A>(t - 1));
      cubic_weight(rest - step, weight, slope);
      const Position<A> tap = padded(Position<A>{whole + step, V(A(0))}, g, size);
      out.set(t, whole_of(tap.spot), size, weight, slope * p.slope);
    }
  } else if constexpr (kMode == GridMode::Nearest) {
    p = padded(p, g, size);
    out.set(0, whole_of(vm::round_even(p.spot)), size, V(A(1)), V(A(0)));
  } else {
    p = padded(p, g, size);
    const V whole = vm::floor(p.spot), rest = p.spot - whole;
    const Vec<int_of<A>> first = whole_of(whole);
    out.set(0, first, size, V(A(1)) - rest, -p.slope);
    out.set(1, first + Vec<int_of<A>>(int_of<A>(1)), size, rest, p.slope);
  }
  return out;
}

// Where the pairs of the register of points from p on stand.
template <class A> C10_ALWAYS_INLINE void find_pairs(int64_t p, GridBlock<A>& block) {
  using I = Vec<int_of<A>>;
  const I zero(int_of<A>(0)), one(int_of<A>(1));
  for (int t = 0; t < block.taps; t += 2) {
    const I left = I::load(&block.index[t * kGridBlock + p]);
    const I right = I::load(&block.index[(t + 1) * kGridBlock + p]);
    const auto has_left = left >= zero, has_right = right >= zero;
    select(has_left, select(has_right, left, left - one), select(has_right, right, zero))
        .store(&block.pair[t / 2 * kGridBlock + p]);
  }
}

template <class A, GridMode kMode, bool kSlopes>
void find_taps(const GridGeometry& g, int64_t n, GridBlock<A>& block) {
  using V = Vec<A>;
  using I = Vec<int_of<A>>;
  constexpr int kTaps = kMode == GridMode::Cubic ? 4 : kMode == GridMode::Nearest ? 1 : 2;
  const int depth = g.dims == 3 ? kTaps : 1;
  const I height(static_cast<int_of<A>>(g.size[1])), width(static_cast<int_of<A>>(g.size[2]));
  const A* spot = block.coordinates.get();
  for (int64_t p = 0; p < n; p += V::kLanes) {
    const auto x = axis_taps<A, kMode>(g, V::load(spot + p), g.size[2]);
    const auto y = axis_taps<A, kMode>(g, V::load(spot + kGridBlock + p), g.size[1]);
    AxisTaps<A> z;
    if (g.dims == 3)
      z = axis_taps<A, kMode>(g, V::load(spot + 2 * kGridBlock + p), g.size[0]);
    else
      z.set(0, I(int_of<A>(0)), 1, V(A(1)), V(A(0)));
    int64_t to = p;
    for (int k = 0; k < depth; ++k) {
      for (int j = 0; j < kTaps; ++j) {
        for (int i = 0; i < kTaps; ++i, to += kGridBlock) {
          const I place = (z.index[k] * height + y.index[j]) * width + x.index[i];
          const I outside = x.index[i] | y.index[j] | z.index[k];
          select(outside < I(int_of<A>(0)), I(int_of<A>(-1)), place).store(&block.index[to]);
          const V xy = x.weight[i] * y.weight[j];
          (g.dims == 3 ? xy * z.weight[k] : xy).store(&block.weight[to]);
          if constexpr (!kSlopes) continue;
          (x.slope[i] * y.weight[j] * z.weight[k]).store(&block.slope[0][to]);
          (x.weight[i] * y.slope[j] * z.weight[k]).store(&block.slope[1][to]);
          (x.weight[i] * y.weight[j] * z.slope[k]).store(&block.slope[2][to]);
        }
      }
    }
    if (kMode == GridMode::Linear && block.pair) find_pairs(p, block);
  }
}

template <class A> void find(const GridGeometry& g, int64_t n, GridBlock<A>& block) {
  const auto choose = [&](auto plain, auto with_slopes) {
    (block.slopes ? with_slopes : plain)(g, n, block);
  };
  switch (g.mode) {
  case GridMode::Linear:
    return choose(&find_taps<A, GridMode::Linear, false>, &find_taps<A, GridMode::Linear, true>);
  case GridMode::Nearest:
    return choose(&find_taps<A, GridMode::Nearest, false>, &find_taps<A, GridMode::Nearest, true>);
  case GridMode::Cubic:
    return choose(&find_taps<A, GridMode::Cubic, false>, &find_taps<A, GridMode::Cubic, true>);
  }
}

// plane[index] and plane[index + 1]: one load for both halves the work.
struct Pair {
  Vec<float> left, right;
};
C10_ALWAYS_INLINE Pair gather_pairs(const float* plane, const int* index) {
  using Raw = Vec<float>::Raw;
  using Wide = Vec<long>::Raw;
  const auto spot = [=](int i) {
    long both;
    std::memcpy(&both, plane + static_cast<unsigned>(index[i]), sizeof(long));
    return both;
  };
#if defined(__AVX512F__)
  const auto a = (Raw)Wide{spot(0), spot(1), spot(2), spot(3), spot(4), spot(5), spot(6), spot(7)};
  const auto b =
      (Raw)Wide{spot(8), spot(9), spot(10), spot(11), spot(12), spot(13), spot(14), spot(15)};
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
#elif defined(__AVX2__)
  const auto a = (Raw)Wide{spot(0), spot(1), spot(2), spot(3)},
             b = (Raw)Wide{spot(4), spot(5), spot(6), spot(7)};
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
#else
  const auto a = (Raw)Wide{spot(0), spot(1)}, b = (Raw)Wide{spot(2), spot(3)};
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6), __builtin_shufflevector(a, b, 1, 3, 5, 7)};
#endif
}

// The sample of the register of points from p on, two taps at a time.
C10_ALWAYS_INLINE Vec<float> sample_pairs(const GridBlock<float>& block, const float* plane,
                                          int64_t p, int taps) {
  using V = Vec<float>;
  const V zero(0.0f);
  V sum = zero;
  for (int t = 0; t < taps; t += 2) {
    const int64_t first = t * kGridBlock + p, second = first + kGridBlock;
    const Pair pair = gather_pairs(plane, &block.pair[t / 2 * kGridBlock + p]);
    const Mask<float> has_left{(Vec<int>::load(&block.index[first]) >= Vec<int>(0)).m};
    const Mask<float> has_right{(Vec<int>::load(&block.index[second]) >= Vec<int>(0)).m};
    const V left = select(has_left, select(has_right, pair.left, pair.right), zero);
    const V right = select(has_right, select(has_left, pair.right, pair.left), zero);
    sum = vm::fma(V::load(&block.weight[first]), left, sum);
    sum = vm::fma(V::load(&block.weight[second]), right, sum);
  }
  return sum;
}

// The sample of the register of points from p on. One tap is the element itself, which keeps -0.
template <class A>
C10_ALWAYS_INLINE Vec<A> sample_at(const GridBlock<A>& block, const A* plane, int64_t p, int taps) {
  using I = Vec<int_of<A>>;
  if constexpr (std::is_same_v<A, float>)
    if (block.pair) return sample_pairs(block, plane, p, taps);
  const Vec<A> first = gather(plane, I::load(&block.index[p]));
  if (taps == 1) return first;
  Vec<A> sum = Vec<A>::load(&block.weight[p]) * first;
  for (int t = 1; t < taps; ++t) {
    const int64_t spot = t * kGridBlock + p;
    sum =
        vm::fma(Vec<A>::load(&block.weight[spot]), gather(plane, I::load(&block.index[spot])), sum);
  }
  return sum;
}

template <class A> void sample(const GridBlock<A>& block, const A* plane, A* out, int64_t n) {
  using V = Vec<A>;
  int64_t p = 0;
  if (block.taps == 4) {
    for (; p + V::kLanes <= n; p += V::kLanes) sample_at(block, plane, p, 4).store(out + p);
  } else {
    for (; p + V::kLanes <= n; p += V::kLanes)
      sample_at(block, plane, p, block.taps).store(out + p);
  }
  if (p == n) return;
  A rest[V::kLanes];
  sample_at(block, plane, p, block.taps).store(rest);
  std::memcpy(out + p, rest, sizeof(A) * static_cast<size_t>(n - p));
}

template <class A> void slopes(const GridBlock<A>& block, int dims, const A* plane, const A* grad,
                               int64_t n, A* const* sums) {
  using V = Vec<A>;
  for (int64_t p = 0; p < n; p += V::kLanes) {
    V total[3] = {V(A(0)), V(A(0)), V(A(0))};
    for (int t = 0; t < block.taps; ++t) {
      const int64_t spot = t * kGridBlock + p;
      const V element = gather(plane, Vec<int_of<A>>::load(&block.index[spot]));
      for (int d = 0; d < dims; ++d)
        total[d] = vm::fma(V::load(&block.slope[d][spot]), element, total[d]);
    }
    const V value = V::load(grad + p);
    for (int d = 0; d < dims; ++d)
      vm::fma(total[d], value, V::load(sums[d] + p)).store(sums[d] + p);
  }
}

} // namespace

GridLoops<float> float_grid() { return {&find<float>, &sample<float>, &slopes<float>}; }
GridLoops<double> double_grid() { return {&find<double>, &sample<double>, &slopes<double>}; }

} // namespace CRESSET_ISA
} // namespace at::native::interpolate
