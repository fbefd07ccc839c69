// Every interpolation here is a weighted sum along each axis in turn, so an axis is described by
// the elements each output takes and their weights: one for nearest, two for linear, four for
// cubic, as many as the filter covers when aliasing is to be avoided.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace at::native::interpolate {

enum class Mode { Nearest, NearestExact, Linear, Cubic, LinearAa, CubicAa, LanczosAa };

// Tap t of output o takes element index[t * out + o] with weight[t * out + o]; all indices are in
// range. A is the type that is computed in.
template <class A> struct Axis {
  int64_t in = 1, out = 1;
  int taps = 1;
  std::vector<int32_t> index;
  std::vector<A> weight;
  // Each output is the input at the same place.
  bool identity = false;
};

// `scale` is the caller's factor, used instead of out / in when it is positive. Sizes are at least
// 1 and `in` less than 2^31.
template <class A> Axis<A> make_axis(Mode mode, int64_t in, int64_t out, bool align_corners,
                                     std::optional<double> scale);

extern template Axis<float> make_axis<float>(Mode, int64_t, int64_t, bool, std::optional<double>);
extern template Axis<double> make_axis<double>(Mode, int64_t, int64_t, bool, std::optional<double>);

} // namespace at::native::interpolate
