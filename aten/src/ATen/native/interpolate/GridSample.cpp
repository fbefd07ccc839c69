// Taps of grid sampling in half types. A coordinate in [-1, 1] becomes a position among the
// elements, is brought inside by the padding rule, and takes its neighbours; elements outside have
// no tap, which is what padding with zeros means.
#include <ATen/native/interpolate/GridSample.h>

#include <cmath>

namespace at::native::interpolate {
namespace {

// Half types compute in themselves here, rounding after each step, as PyTorch does: which neighbour
// a sample takes depends on it.
template <class A> A floor_of(A x) { return static_cast<A>(std::floor(static_cast<float>(x))); }
template <class A> A abs_of(A x) { return static_cast<A>(std::abs(static_cast<float>(x))); }
template <class A> A modulo(A x, A y) {
  return static_cast<A>(std::fmod(static_cast<float>(x), static_cast<float>(y)));
}
template <class A> int64_t whole_of(A x) { return static_cast<int64_t>(static_cast<float>(x)); }

template <class A> A unnormalized(A x, int64_t size, bool align_corners) {
  const A factor = static_cast<A>(static_cast<float>(align_corners ? size - 1 : size) / 2);
  const A spot = (x + A(1.f)) * factor;
  return align_corners ? spot : spot - A(0.5f);
}

template <class A> A clipped(A spot, int64_t size) {
  const A most = static_cast<A>(static_cast<float>(size - 1));
  if (spot > A(0.f) && spot < most) return spot;
  return spot >= most ? most : A(0.f);
}

// Mirrored at low / 2 and high / 2 until it lies between.
template <class A> A reflected(A spot, int64_t low, int64_t high) {
  if (low == high) return A(0.f);
  const A least = static_cast<A>(static_cast<float>(low) / 2);
  const A span = static_cast<A>(static_cast<float>(high - low) / 2);
  const A x = abs_of(spot - least), rest = modulo(x, span);
  const bool even = modulo(floor_of(x / span), A(2.f)) == A(0.f);
  return (even ? rest : span - rest) + least;
}

template <class A> A padded(A spot, const GridGeometry& g, int64_t size) {
  if (g.padding == GridPadding::Reflection)
    spot = g.align_corners ? reflected(spot, 0, 2 * (size - 1)) : reflected(spot, -1, 2 * size - 1);
  if (g.padding != GridPadding::Zeros) spot = clipped(spot, size);
  // What no integer holds lies outside.
  return static_cast<float>(abs_of(spot)) < 1e9f ? spot : A(-100.f);
}

// The elements along one axis with weights; -1 outside.
template <class A> struct AxisTaps {
  int count = 0;
  int64_t index[4];
  A weight[4];
  void add(int64_t i, int64_t size, A w) {
    index[count] = i >= 0 && i < size ? i : -1;
    weight[count++] = w;
  }
};

// The cubic convolution kernel at distance x, slope -0.75 at 1.
template <class A> A cubic_weight(A x) {
  const A d = abs_of(x);
  if (!(d > A(1.f))) return (A(1.25f) * d - A(2.25f)) * d * d + A(1.f);
  return ((A(-0.75f) * d - A(-3.75f)) * d + A(-6.f)) * d - A(-3.f);
}

template <class A> AxisTaps<A> axis_taps(const GridGeometry& g, A x, int64_t size) {
  AxisTaps<A> out;
  A spot = unnormalized(x, size, g.align_corners);
  if (g.mode == GridMode::Cubic) {
    if (!(static_cast<float>(abs_of(spot)) < 1e9f)) spot = A(-100.f);
    const A whole = floor_of(spot), rest = spot - whole;
    for (int t = -1; t < 3; ++t) {
      const A step = static_cast<A>(static_cast<float>(t));
      out.add(whole_of(padded(whole + step, g, size)), size, cubic_weight(rest - step));
    }
    return out;
  }
  spot = padded(spot, g, size);
  if (g.mode == GridMode::Nearest) {
    out.add(static_cast<int64_t>(std::nearbyint(static_cast<float>(spot))), size, A(1.f));
    return out;
  }
  const A whole = floor_of(spot), rest = spot - whole;
  out.add(whole_of(whole), size, A(1.f) - rest);
  out.add(whole_of(whole) + 1, size, rest);
  return out;
}

} // namespace

template <class A> void grid_taps(const GridGeometry& g, const A* point, GridTaps<A>& taps) {
  const AxisTaps<A> x = axis_taps(g, point[0], g.size[2]), y = axis_taps(g, point[1], g.size[1]);
  AxisTaps<A> z;
  if (g.dims == 3)
    z = axis_taps(g, point[2], g.size[0]);
  else
    z.add(0, 1, A(1.f));
  taps.count = 0;
  for (int k = 0; k < z.count; ++k) {
    for (int j = 0; j < y.count; ++j) {
      for (int i = 0; i < x.count; ++i) {
        if (x.index[i] < 0 || y.index[j] < 0 || z.index[k] < 0) continue;
        const int n = taps.count++;
        taps.index[n] = (z.index[k] * g.size[1] + y.index[j]) * g.size[2] + x.index[i];
        taps.weight[n] = x.weight[i] * y.weight[j];
        if (g.dims == 3) taps.weight[n] = taps.weight[n] * z.weight[k];
      }
    }
  }
}

template void grid_taps<c10::Half>(const GridGeometry&, const c10::Half*, GridTaps<c10::Half>&);
template void grid_taps<c10::BFloat16>(const GridGeometry&, const c10::BFloat16*,
                                       GridTaps<c10::BFloat16>&);

} // namespace at::native::interpolate
