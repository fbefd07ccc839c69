// The positions and weights of interpolation. Positions are computed in the type of the data, with
// PyTorch's conventions for pixel centres, so that the same elements are taken at the borders.
#include <ATen/native/interpolate/Taps.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <c10/util/MathConstants.h>
#include <cmath>

namespace at::native::interpolate {
namespace {

// Source elements per output element.
template <class A>
A step_of(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  if (align_corners) return out > 1 ? static_cast<A>(in - 1) / static_cast<A>(out - 1) : A(0);
  if (scale && *scale > 0) return static_cast<A>(1.0 / *scale);
  return static_cast<A>(in) / static_cast<A>(out);
}

// A position as an element; any number, NaN included, gives one in range.
template <class A> int64_t within(A x, int64_t in) {
  if (!(x > 0)) return 0;
  return x < static_cast<A>(in - 1) ? static_cast<int64_t>(x) : in - 1;
}

// f(o, output) for the o-th output of the part and its number on the axis.
template <class A, class F> void for_outputs(const Axis<A>& axis, const F& f) {
  parallel_for(0, axis.out, 32768 / axis.taps + 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) f(o, axis.first + o);
  });
}

template <class A> void nearest(Axis<A>& axis, bool exact, std::optional<double> scale) {
  // Positions of nearest neighbours are float whatever the data is.
  const float step = step_of<float>(axis.in, axis.whole, false, scale);
  axis.index = RawTable<int32_t>(axis.out);
  for_outputs(axis, [&](int64_t o, int64_t place) {
    const float p = static_cast<float>(place), position = exact ? (p + 0.5f) * step : p * step;
    axis.index[o] = static_cast<int32_t>(within(std::floor(position), axis.in));
  });
  axis.identity = axis.in == axis.whole;
  for (int64_t o = 0; axis.identity && o < axis.out; ++o)
    axis.identity = axis.index[o] == axis.first + o;
}

template <class A> void resize(Axis<A>& axis, int taps) {
  axis.taps = taps;
  axis.index = RawTable<int32_t>(axis.out * taps);
  axis.weight = RawTable<A>(axis.out * taps);
}

template <class A> void linear(Axis<A>& axis, bool align_corners, std::optional<double> scale) {
  resize(axis, 2);
  if (axis.in == axis.whole && (align_corners || !scale || *scale == 1)) axis.identity = true;
  const A step = step_of<A>(axis.in, axis.whole, align_corners, scale);
  for_outputs(axis, [&](int64_t o, int64_t place) {
    const A p = static_cast<A>(place);
    A position = align_corners ? step * p : step * (p + A(0.5)) - A(0.5);
    if (!(position > 0)) position = 0;
    const int64_t first = within(position, axis.in), second = std::min(first + 1, axis.in - 1);
    const A weight = std::min(std::max(position - static_cast<A>(first), A(0)), A(1));
    axis.index[o] = static_cast<int32_t>(first);
    axis.index[axis.out + o] = static_cast<int32_t>(second);
    axis.weight[o] = A(1) - weight;
    axis.weight[axis.out + o] = weight;
  });
}

// The cubic convolution kernel with slope `a` at distance 1.
template <class A> A cubic_kernel(A x, A a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

template <class A> void cubic(Axis<A>& axis, bool align_corners, std::optional<double> scale) {
  resize(axis, 4);
  const A step = step_of<A>(axis.in, axis.whole, align_corners, scale), a = A(-0.75);
  for_outputs(axis, [&](int64_t o, int64_t place) {
    const A p = static_cast<A>(place);
    A position = align_corners ? step * p : step * (p + A(0.5)) - A(0.5);
    // Beyond the data only its edge is seen.
    if (!(position > A(-8))) position = A(-8);
    position = std::min(position, static_cast<A>(axis.in) + 8);
    const A whole = std::floor(position), rest = position - whole;
    for (int t = 0; t < 4; ++t) {
      const int64_t i = std::clamp<int64_t>(static_cast<int64_t>(whole) - 1 + t, 0, axis.in - 1);
      axis.index[t * axis.out + o] = static_cast<int32_t>(i);
      axis.weight[t * axis.out + o] = cubic_kernel(rest + 1 - static_cast<A>(t), a);
    }
  });
}

template <class A> A filter(Mode mode, A x) {
  if (mode == Mode::LinearAa) return std::max(A(0), A(1) - std::abs(x));
  if (mode == Mode::CubicAa) return cubic_kernel(x, A(-0.5));
  if (std::abs(x) >= 3) return 0;
  if (x == 0) return 1;
  const A p = c10::pi<A> * x;
  return 3 * std::sin(p) * std::sin(p / 3) / (p * p);
}

// A filter as wide as the output's pixel, its weights normalised.
template <class A>
void antialias(Axis<A>& axis, Mode mode, bool align_corners, std::optional<double> scale) {
  const A step = step_of<A>(axis.in, axis.whole, align_corners, scale);
  const A radius = mode == Mode::LinearAa ? A(1) : mode == Mode::CubicAa ? A(2) : A(3);
  const A wide = step >= 1 ? step : A(1);
  const A support = radius * wide;
  const double reach = std::ceil(std::min(static_cast<double>(support), double(axis.in)));
  const int taps = static_cast<int>(std::min<int64_t>(int64_t(reach) * 2 + 1, axis.in));
  resize(axis, taps);
  for_outputs(axis, [&](int64_t o, int64_t place) {
    const A center = step * (static_cast<A>(place) + A(0.5));
    const int64_t last = axis.in;
    const int64_t low = within(center - support + A(0.5), last);
    const A above = center + support + A(0.5);
    const int64_t high = above < static_cast<A>(last) ? within(above, last) : last;
    const int64_t count = std::clamp<int64_t>(high - low, 0, taps);
    A total = 0;
    Steps steps;
    for (int64_t t = 0; t < taps; ++t) {
      steps.add(16);
      const A w =
          t < count ? filter(mode, (static_cast<A>(t + low) - center + A(0.5)) / wide) : A(0);
      axis.index[t * axis.out + o] = static_cast<int32_t>(std::min(low + t, last - 1));
      axis.weight[t * axis.out + o] = w;
      total += w;
    }
    if (total == 0) return;
    for (int64_t t = 0; t < taps; ++t) axis.weight[t * axis.out + o] /= total;
  });
}

// Indices from the first element that the part needs.
template <class A> void shift(Axis<A>& axis) {
  const auto [low, high] = std::minmax_element(axis.index.begin(), axis.index.end());
  axis.low = axis.identity ? axis.first : *low;
  axis.span = axis.identity ? axis.out : *high - *low + 1;
  for (int32_t& i : axis.index) i -= static_cast<int32_t>(axis.low);
}

} // namespace

template <class A> Axis<A> make_axis(const AxisSpec& spec, int64_t first, int64_t count) {
  Axis<A> axis;
  axis.in = spec.in;
  axis.out = count;
  axis.whole = spec.out;
  axis.first = first;
  switch (spec.mode) {
  case Mode::Nearest:
  case Mode::NearestExact:
    nearest(axis, spec.mode == Mode::NearestExact, spec.scale);
    break;
  case Mode::Linear:
    linear(axis, spec.align_corners, spec.scale);
    break;
  case Mode::Cubic:
    cubic(axis, spec.align_corners, spec.scale);
    break;
  default:
    antialias(axis, spec.mode, spec.align_corners, spec.scale);
  }
  axis.span = axis.in;
  if (count < spec.out) shift(axis);
  return axis;
}

template Axis<float> make_axis<float>(const AxisSpec&, int64_t, int64_t);
template Axis<double> make_axis<double>(const AxisSpec&, int64_t, int64_t);

} // namespace at::native::interpolate
