// Grid sampling: out[n, c, p] is input[n, c] at the place grid[n, p]. A thread has one point and
// some channels of it, so that places and weights are found once for these. The gradient for the
// input is added to a buffer of the accumulator's type by whichever thread comes first; that for
// the grid has one thread for each point.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/interpolate/GridSampler.args.h>

namespace at::device {

constexpr int kGridChannels = 8; // of one thread

// A position along an axis, and its derivative by the coordinate.
template <class A> struct GridPosition { A spot, slope; };

template <class A> CRESSET_DEVICE_FN GridPosition<A> grid_position(A x, long size, bool corners) {
  const A factor = static_cast<A>(corners ? size - 1 : size) / 2;
  return {(x + 1) * factor - (corners ? A(0) : A(0.5)), factor};
}
template <class A> CRESSET_DEVICE_FN void grid_clip(GridPosition<A>& p, long size) {
  const A most = static_cast<A>(size - 1);
  if (p.spot > 0 && p.spot < most) return;
  p = {p.spot >= most ? most : A(0), A(0)};
}
// Mirrored at low / 2 and high / 2 until it lies between.
template <class A> CRESSET_DEVICE_FN void grid_reflect(GridPosition<A>& p, long low, long high) {
  if (low == high) {
    p = {A(0), A(0)};
    return;
  }
  const A least = static_cast<A>(low) / 2, span = static_cast<A>(high - low) / 2;
  const A moved = p.spot - least, x = moved < 0 ? -moved : moved;
  const A flips = floor(x / span), rest = x - flips * span;
  const bool odd = flips - 2 * floor(flips / 2) != 0;
  p.spot = (odd ? span - rest : rest) + least;
  if (odd != (moved < 0)) p.slope = -p.slope;
}
template <class A> CRESSET_DEVICE_FN GridPosition<A>
grid_padded(GridPosition<A> p, const GridSamplerArgs& a, long size) {
  if (a.padding == 2) {
    if (a.align_corners)
      grid_reflect(p, 0, 2 * (size - 1));
    else
      grid_reflect(p, -1, 2 * size - 1);
  }
  if (a.padding != 0) grid_clip(p, size);
  // What no index holds lies outside.
  if (!(fabs(p.spot) < A(1e9))) p.spot = A(-100);
  return p;
}

// The elements along one axis with weights and slopes; -1 is outside.
template <class A, int kTaps> struct GridAxis {
  long index[kTaps];
  A weight[kTaps], slope[kTaps];
  CRESSET_DEVICE_FN void set(int t, A i, long size, A w, A s) {
    const long place = static_cast<long>(i);
    index[t] = i >= 0 && place < size ? place : -1;
    weight[t] = w;
    slope[t] = s;
  }
  // The axis that two dimensions do not have.
  CRESSET_DEVICE_FN void set_whole() {
    CRESSET_UNROLL
    for (int t = 0; t < kTaps; ++t) set(t, t == 0 ? A(0) : A(-1), 1, t == 0 ? A(1) : A(0), A(0));
  }
};

// Weight and slope of the cubic convolution kernel at distance x, slope -0.75 at 1.
template <class A> CRESSET_DEVICE_FN void grid_cubic(A x, A& weight, A& slope) {
  const A d = fabs(x);
  A steep;
  if (d > 1) {
    weight = ((A(-0.75) * d + A(3.75)) * d - 6) * d + 3;
    steep = (A(-2.25) * d + A(7.5)) * d - 6;
  } else {
    weight = (A(1.25) * d - A(2.25)) * d * d + 1;
    steep = (A(3.75) * d - A(4.5)) * d;
  }
  slope = x < 0 ? -steep : steep;
}

template <class A, int kTaps>
CRESSET_DEVICE_FN GridAxis<A, kTaps> grid_axis(A x, const GridSamplerArgs& a, long size) {
  GridAxis<A, kTaps> axis;
  GridPosition<A> p = grid_position(x, size, a.align_corners != 0);
  if constexpr (kTaps == 4) {
    if (!(fabs(p.spot) < A(1e9))) p.spot = A(-100);
    const A whole = floor(p.spot), rest = p.spot - whole;
    CRESSET_UNROLL
    for (int t = 0; t < 4; ++t) {
      A weight, slope;
      grid_cubic(rest - static_cast<A>(t - 1), weight, slope);
      const GridPosition<A> tap =
          grid_padded(GridPosition<A>{whole + static_cast<A>(t - 1), A(0)}, a, size);
      axis.set(t, tap.spot, size, weight, slope * p.slope);
    }
  } else if constexpr (kTaps == 1) {
    axis.set(0, nearbyint(grid_padded(p, a, size).spot), size, A(1), A(0));
  } else {
    p = grid_padded(p, a, size);
    const A whole = floor(p.spot), rest = p.spot - whole;
    axis.set(0, whole, size, 1 - rest, -p.slope);
    axis.set(1, whole + 1, size, rest, p.slope);
  }
  return axis;
}

template <class A, int kTaps> struct GridTaps {
  GridAxis<A, kTaps> x, y, z;
  template <class T> CRESSET_DEVICE_FN GridTaps(const T* point, const GridSamplerArgs& a) {
    x = grid_axis<A, kTaps>(convert<A>(point[0]), a, a.size[2]);
    y = grid_axis<A, kTaps>(convert<A>(point[1]), a, a.size[1]);
    if (a.dims == 3)
      z = grid_axis<A, kTaps>(convert<A>(point[2]), a, a.size[0]);
    else
      z.set_whole();
  }
  // f(place, i, j, k) over the elements inside.
  template <class F> CRESSET_DEVICE_FN void each(const GridSamplerArgs& a, const F& f) const {
    CRESSET_NO_UNROLL
    for (int k = 0; k < (a.dims == 3 ? kTaps : 1); ++k)
      for (int j = 0; j < kTaps; ++j)
        for (int i = 0; i < kTaps; ++i)
          if (x.index[i] >= 0 && y.index[j] >= 0 && z.index[k] >= 0)
            f((z.index[k] * a.size[1] + y.index[j]) * a.size[2] + x.index[i], i, j, k);
  }
};

// The point and the first channel of this thread; false past the end.
struct GridThread {
  long image, point, channel;
};
CRESSET_DEVICE_FN bool grid_thread(GridThread& t, const GridSamplerArgs& a, long parts) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.batch * parts * a.points) return false;
  if (a.small) { // a division of 32 bits costs a third of one of 64
    const unsigned points = static_cast<unsigned>(a.points), count = static_cast<unsigned>(parts);
    const unsigned rest = static_cast<unsigned>(i) / points;
    t.point = static_cast<unsigned>(i) - rest * points;
    t.image = rest / count;
    t.channel = (rest - static_cast<unsigned>(t.image) * count) * kGridChannels;
  } else {
    t.point = i % a.points;
    t.channel = i / a.points % parts * kGridChannels;
    t.image = i / a.points / parts;
  }
  return true;
}
CRESSET_DEVICE_FN long grid_parts(const GridSamplerArgs& a) {
  return (a.channels + kGridChannels - 1) / kGridChannels;
}

template <class T, int kTaps> CRESSET_DEVICE_FN void grid_sample(const T* input, const T* grid,
                                                                 T* out, const GridSamplerArgs& a) {
  using A = opmath_t<T>;
  GridThread t;
  if (!grid_thread(t, a, grid_parts(a))) return;
  const GridTaps<A, kTaps> taps(grid + (t.image * a.points + t.point) * a.dims, a);
  const long plane = a.size[0] * a.size[1] * a.size[2];
  for (long c = t.channel; c < a.channels && c < t.channel + kGridChannels; ++c) {
    const T* const from = input + (t.image * a.channels + c) * plane;
    A sum = 0;
    taps.each(a, [&](long place, int i, int j, int k) {
      sum += taps.x.weight[i] * taps.y.weight[j] * taps.z.weight[k] * convert<A>(from[place]);
    });
    out[(t.image * a.channels + c) * a.points + t.point] = convert<T>(sum);
  }
}

template <class T, int kTaps> CRESSET_DEVICE_FN void
grid_to_input(const T* grad, const T* grid, opmath_t<T>* out, const GridSamplerArgs& a) {
  using A = opmath_t<T>;
  GridThread t;
  if (!grid_thread(t, a, grid_parts(a))) return;
  const GridTaps<A, kTaps> taps(grid + (t.image * a.points + t.point) * a.dims, a);
  const long plane = a.size[0] * a.size[1] * a.size[2];
  for (long c = t.channel; c < a.channels && c < t.channel + kGridChannels; ++c) {
    const A g = convert<A>(grad[(t.image * a.channels + c) * a.points + t.point]);
    A* const to = out + (t.image * a.channels + c) * plane;
    taps.each(a, [&](long place, int i, int j, int k) {
      atomicAdd(to + place, g * taps.x.weight[i] * taps.y.weight[j] * taps.z.weight[k]);
    });
  }
}

template <class T, int kTaps> CRESSET_DEVICE_FN void
grid_to_grid(const T* grad, const T* input, const T* grid, T* out, const GridSamplerArgs& a) {
  using A = opmath_t<T>;
  const long p = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (p >= a.batch * a.points) return;
  const long image = p / a.points, point = p % a.points;
  const GridTaps<A, kTaps> taps(grid + p * a.dims, a);
  const long plane = a.size[0] * a.size[1] * a.size[2];
  A to[3] = {A(0), A(0), A(0)};
  for (long c = 0; c < a.channels; ++c) {
    const A g = convert<A>(grad[(image * a.channels + c) * a.points + point]);
    const T* const from = input + (image * a.channels + c) * plane;
    taps.each(a, [&](long place, int i, int j, int k) {
      const A v = g * convert<A>(from[place]);
      to[0] += v * taps.x.slope[i] * taps.y.weight[j] * taps.z.weight[k];
      to[1] += v * taps.x.weight[i] * taps.y.slope[j] * taps.z.weight[k];
      to[2] += v * taps.x.weight[i] * taps.y.weight[j] * taps.z.slope[k];
    });
  }
  for (int d = 0; d < a.dims; ++d) out[p * a.dims + d] = convert<T>(to[d]);
}

} // namespace at::device

#define CRESSET_BY_MODE(function, type, ...)                                                       \
  if (a.mode == 0)                                                                                 \
    at::device::function<type, 2>(__VA_ARGS__, a);                                                 \
  else if (a.mode == 1)                                                                            \
    at::device::function<type, 1>(__VA_ARGS__, a);                                                 \
  else                                                                                             \
    at::device::function<type, 4>(__VA_ARGS__, a);
#define CRESSET_GRID_SAMPLER(T)                                                                    \
  CRESSET_KERNEL(256)                                                                              \
  grid_sample_##T(const cresset_##T* input, const cresset_##T* grid, cresset_##T* out,             \
                  at::device::GridSamplerArgs a){                                                  \
      CRESSET_BY_MODE(grid_sample, cresset_##T, input, grid, out)} CRESSET_KERNEL(256)             \
      grid_to_input_##T(const cresset_##T* grad, const cresset_##T* grid,                          \
                        at::device::opmath_t<cresset_##T>* out, at::device::GridSamplerArgs a){    \
          CRESSET_BY_MODE(grid_to_input, cresset_##T, grad, grid, out)} CRESSET_KERNEL(256)        \
          grid_to_grid_##T(const cresset_##T* grad, const cresset_##T* input,                      \
                           const cresset_##T* grid, cresset_##T* out,                              \
                           at::device::GridSamplerArgs a) {                                        \
    CRESSET_BY_MODE(grid_to_grid, cresset_##T, grad, input, grid, out)                             \
  }
CRESSET_GRID_SAMPLER(f32)
CRESSET_GRID_SAMPLER(f64)
CRESSET_GRID_SAMPLER(f16)
CRESSET_GRID_SAMPLER(bf16)
