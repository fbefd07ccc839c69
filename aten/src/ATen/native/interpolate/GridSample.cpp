// Taps of grid sampling. A coordinate in [-1, 1] becomes a position among the elements, is brought
// inside by the padding rule, and takes its neighbours; elements outside have no tap, which is what
// padding with zeros means.
#include <ATen/native/interpolate/GridSample.h>

#include <algorithm>
#include <cmath>

namespace at::native::interpolate {
namespace {

// A position and its derivative by the coordinate.
template <class A> struct Position { A at, slope; };

template <class A> Position<A> unnormalized(A x, int64_t size, bool align_corners) {
  const A n = static_cast<A>(size);
  if (align_corners) return {(x + 1) / 2 * (n - 1), (n - 1) / 2};
  return {((x + 1) * n - 1) / 2, n / 2};
}

template <class A> void clip(Position<A>& p, int64_t size) {
  const A most = static_cast<A>(size - 1);
  if (p.at > 0 && p.at < most) return;
  p.slope = 0;
  p.at = p.at >= most ? most : A(0);
}

// Mirrored at low / 2 and high / 2 until it lies between.
template <class A> void reflect(Position<A>& p, int64_t low, int64_t high) {
  if (low == high) {
    p = {0, 0};
    return;
  }
  const A least = static_cast<A>(low) / 2, span = static_cast<A>(high - low) / 2;
  A x = p.at - least;
  if (x < 0) {
    x = -x;
    p.slope = -p.slope;
  }
  const A rest = std::fmod(x, span);
  const A flips = std::floor(x / span);
  if (std::fmod(flips, A(2)) == 0) {
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
  if (!(std::abs(p.at) < A(1e9))) p.at = A(-100);
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
  const A a = A(-0.75), d = std::abs(x), sign = x < 0 ? A(-1) : A(1);
  if (d <= 1) {
    weight = ((a + 2) * d - (a + 3)) * d * d + 1;
    slope = (3 * (a + 2) * d - 2 * (a + 3)) * d * sign;
  } else {
    weight = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    slope = ((3 * a * d - 10 * a) * d + 8 * a) * sign;
  }
}

template <class A> AxisTaps<A> axis_taps(const GridGeometry& g, A x, int64_t size) {
  AxisTaps<A> out;
  Position<A> p = unnormalized(x, size, g.align_corners);
  if (g.mode == GridMode::Cubic) {
    if (!(std::abs(p.at) < A(1e9))) p.at = A(-100);
    const A whole = std::floor(p.at);
    for (int t = -1; t < 3; ++t) {
      A weight, slope;
      const A distance = p.at - (whole + static_cast<A>(t));
      cubic_weight(distance, weight, slope);
      const Position<A> tap = padded(Position<A>{whole + static_cast<A>(t), A(0)}, g, size);
      out.add(static_cast<int64_t>(tap.at), size, weight, slope * p.slope);
    }
    return out;
  }
  p = padded(p, g, size);
  if (g.mode == GridMode::Nearest) {
    out.add(static_cast<int64_t>(std::nearbyint(p.at)), size, 1, 0);
    return out;
  }
  const A whole = std::floor(p.at), rest = p.at - whole;
  const int64_t first = static_cast<int64_t>(whole);
  out.add(first, size, 1 - rest, -p.slope);
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
    z.add(0, 1, 1, 0);
  }
  taps.count = 0;
  for (int k = 0; k < z.count; ++k) {
    for (int j = 0; j < y.count; ++j) {
      for (int i = 0; i < x.count; ++i) {
        if (x.index[i] < 0 || y.index[j] < 0 || z.index[k] < 0) continue;
        const int n = taps.count++;
        taps.index[n] = (z.index[k] * g.size[1] + y.index[j]) * g.size[2] + x.index[i];
        taps.weight[n] = x.weight[i] * y.weight[j] * z.weight[k];
        if (!slopes) continue;
        taps.slope[n][0] = x.slope[i] * y.weight[j] * z.weight[k];
        taps.slope[n][1] = x.weight[i] * y.slope[j] * z.weight[k];
        taps.slope[n][2] = x.weight[i] * y.weight[j] * z.slope[k];
      }
    }
  }
}

template void grid_taps<float>(const GridGeometry&, const float*, bool, GridTaps<float>&);
template void grid_taps<double>(const GridGeometry&, const double*, bool, GridTaps<double>&);

} // namespace at::native::interpolate
