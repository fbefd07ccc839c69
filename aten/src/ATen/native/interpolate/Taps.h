// Every interpolation here is a weighted sum along each axis in turn, so an axis is described by
// the elements each output takes and their weights: one for nearest, two for linear, four for
// cubic, as many as the filter covers when aliasing is to be avoided. Long axes are described a
// part at a time.
#pragma once
#include <ATen/native/RawTable.h>

#include <cstdint>
#include <optional>

namespace at::native::interpolate {

enum class Mode { Nearest, NearestExact, Linear, Cubic, LinearAa, CubicAa, LanczosAa };

// Outputs first .. first + out of an axis that has `whole` of them: tap t of the o-th of these
// takes element low + index[t * out + o] with weight[t * out + o]; indices are from 0 to span - 1,
// and low + span is at most `in`. A is the type that is computed in.
template <class A> struct Axis {
  int64_t in = 1, out = 1, whole = 1, first = 0;
  int64_t low = 0, span = 1;
  int taps = 1;
  RawTable<int32_t> index;
  RawTable<A> weight;
  // Each output is the input at the same place.
  bool identity = false;
};

// What is asked for along an axis.
struct AxisSpec {
  Mode mode;
  int64_t in, out; // at least 1, `in` less than 2^31
  bool align_corners;
  std::optional<double> scale; // the caller's factor, used instead of out / in when it is positive
};

// Outputs first .. first + count of the axis.
template <class A> Axis<A> make_axis(const AxisSpec& spec, int64_t first, int64_t count);

extern template Axis<float> make_axis<float>(const AxisSpec&, int64_t, int64_t);
extern template Axis<double> make_axis<double>(const AxisSpec&, int64_t, int64_t);

} // namespace at::native::interpolate
