// Taps of grid sampling. A coordinate in [-1, 1] becomes a position among the elements, is brought
// inside by the padding rule, and takes its neighbours; elements outside have no tap, which is what
// padding with zeros means.
#include <ATen/native/interpolate/GridSample.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cmath>
#include <type_traits>

namespace at::native::interpolate {
namespace {

// Half types compute in themselves here, rounding after each step, as PyTorch does: which neighbour
// a sample takes depends on it.
template <class A> using Wide = std::conditional_t<std::is_same_v<A, double>, double, float>;
template <class A> A floor_of(A x) { return static_cast<A>(std::floor(static_cast<Wide<A>>(x))); }
template <class A> A abs_of(A x) { return static_cast<A>(std::abs(static_cast<Wide<A>>(x))); }
template <class A> A modulo(A x, A y) {
  return static_cast<A>(std::fmod(static_cast<Wide<A>>(x), static_cast<Wide<A>>(y)));
}
template <class A> int64_t whole_of(A x) { return static_cast<int64_t>(static_cast<Wide<A>>(x)); }

// A position and its derivative by the coordinate.
template <class A> struct Position { A at, slope; };

template <class A> Position<A> unnormalized(A x, int64_t size, bool align_corners) {
  const A factor = static_cast<A>(static_cast<Wide<A>>(align_corners ? size - 1 : size) / 2);
  const A at = (x + A(1.f)) * factor;
  return {align_corners ? at : at - A(0.5f), factor};
}

template <class A> void clip(Position<A>& p, int64_t size) {
  const A most = static_cast<A>(static_cast<Wide<A>>(size - 1));
  if (p.at > A(0.f) && p.at < most) return;
  p.slope = A(0.f);
  p.at = p.at >= most ? most : A(0.f);
}

// Mirrored at low / 2 and high / 2 until it lies between.
template <class A> void reflect(Position<A>& p, int64_t low, int64_t high) {
  if (low == high) {
    p = {A(0.f), A(0.f)};
    return;
  }
  const A least = static_cast<A>(static_cast<Wide<A>>(low) / 2);
  const A span = static_cast<A>(static_cast<Wide<A>>(high - low) / 2);
  A x = p.at - least;
  if (x < A(0.f)) {
    x = -x;
    p.slope = -p.slope;
  }
  const A rest = modulo(x, span);
  const A flips = floor_of(x / span);
  if (modulo(flips, A(2.f)) == A(0.f)) {
    p.at = rest + least;
  } else {
    p.at = span - rest + least;
    p.slope = -p.slope;
  }
}

template <class A> Position<A> padded(Position<A> p, const GridGeometry& g, int64_t size) {
  if (g.padding == GridPadding::Border) clip(p, size);
  if (g.padding == GridPadding::Reflection) {
    if (g.align_corners) {
      reflect(p, 0, 2 * (size - 1));
    } else {
      reflect(p, -1, 2 * size - 1);
    }
    clip(p, size);
  }
  // What no integer holds lies outside.
  if (!(static_cast<Wide<A>>(abs_of(p.at)) < Wide<A>(1e9))) p.at = A(-100.f);
  return p;
}

// The elements along one axis with weights and slopes; -1 outside.
template <class A> struct AxisTaps {
  int count = 0;
  int64_t index[4];
  A weight[4], slope[4];
  void add(int64_t i, int64_t size, A w, A s) {
    index[count] = i >= 0 && i < size ? i : -1;
    weight[count] = w;
    slope[count++] = s;
  }
};

// Weight and slope of the cubic convolution kernel at distance x, slope -0.75 at 1.
template <class A> void cubic_weight(A x, A& weight, A& slope) {
  const A a(-0.75f), d = abs_of(x), sign = x < A(0.f) ? A(-1.f) : A(1.f);
  if (!(d > A(1.f))) {
    weight = (A(1.25f) * d - A(2.25f)) * d * d + A(1.f);
    slope = (A(3.75f) * d - A(4.5f)) * d * sign;
  } else {
    weight = ((a * d - A(-3.75f)) * d + A(-6.f)) * d - A(-3.f);
    slope = ((A(-2.25f) * d + A(7.5f)) * d + A(-6.f)) * sign;
  }
}

template <class A> AxisTaps<A> axis_taps(const GridGeometry& g, A x, int64_t size) {
  AxisTaps<A> out;
  Position<A> p = unnormalized(x, size, g.align_corners);
  if (g.mode == GridMode::Cubic) {
    if (!(static_cast<Wide<A>>(abs_of(p.at)) < Wide<A>(1e9))) p.at = A(-100.f);
    const A whole = floor_of(p.at), rest = p.at - whole;
    for (int t = -1; t < 3; ++t) {
      A weight, slope;
      const A step = static_cast<A>(static_cast<Wide<A>>(t));
      cubic_weight(rest - step, weight, slope);
      const Position<A> tap = padded(Position<A>{whole + step, A(0.f)}, g, size);
      out.add(whole_of(tap.at), size, weight, slope * p.slope);
    }
    return out;
  }
  p = padded(p, g, size);
  if (g.mode == GridMode::Nearest) {
    out.add(static_cast<int64_t>(std::nearbyint(static_cast<Wide<A>>(p.at))), size, A(1.f), A(0.f));
    return out;
  }
  const A whole = floor_of(p.at), rest = p.at - whole;
  const int64_t first = whole_of(whole);
  out.add(first, size, A(1.f) - rest, -p.slope);
  out.add(first + 1, size, rest, p.slope);
  return out;
}

} // namespace

template <class A>
void grid_taps(const GridGeometry& g, const A* point, bool slopes, GridTaps<A>& taps) {
  const AxisTaps<A> x = axis_taps(g, point[0], g.size[2]), y = axis_taps(g, point[1], g.size[1]);
  AxisTaps<A> z;
  if (g.dims == 3) {
    z = axis_taps(g, point[2], g.size[0]);
  } else {
    z.add(0, 1, A(1.f), A(0.f));
  }
  taps.count = 0;
  for (int k = 0; k < z.count; ++k) {
    for (int j = 0; j < y.count; ++j) {
      for (int i = 0; i < x.count; ++i) {
        if (x.index[i] < 0 || y.index[j] < 0 || z.index[k] < 0) continue;
        const int n = taps.count++;
        taps.index[n] = (z.index[k] * g.size[1] + y.index[j]) * g.size[2] + x.index[i];
        taps.weight[n] = x.weight[i] * y.weight[j];
        if (g.dims == 3) taps.weight[n] = taps.weight[n] * z.weight[k];
        if (!slopes) continue;
        taps.slope[n][0] = x.slope[i] * y.weight[j] * z.weight[k];
        taps.slope[n][1] = x.weight[i] * y.slope[j] * z.weight[k];
        taps.slope[n][2] = x.weight[i] * y.weight[j] * z.slope[k];
      }
    }
  }
}

template void grid_taps<c10::Half>(const GridGeometry&, const c10::Half*, bool,
                                   GridTaps<c10::Half>&);
template void grid_taps<c10::BFloat16>(const GridGeometry&, const c10::BFloat16*, bool,
                                       GridTaps<c10::BFloat16>&);
template void grid_taps<float>(const GridGeometry&, const float*, bool, GridTaps<float>&);
template void grid_taps<double>(const GridGeometry&, const double*, bool, GridTaps<double>&);

} // namespace at::native::interpolate
