// Where a sample of a grid lies in the input: up to 16 elements with their weights, and the
// weights' derivatives by the coordinates. One description serves sampling, both gradients, two and
// three dimensions and every mode.
#pragma once
#include <cstdint>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace at::native::interpolate {

enum class GridMode : int { Linear = 0, Nearest = 1, Cubic = 2 };
enum class GridPadding : int { Zeros = 0, Border = 1, Reflection = 2 };

struct GridGeometry {
  int dims = 2;
  int64_t size[3] = {1, 1, 1}; // depth, height, width; two dimensions use the last two
  GridMode mode = GridMode::Linear;
  GridPadding padding = GridPadding::Zeros;
  bool align_corners = false;
};

constexpr int kMostTaps = 16;

template <class A> struct GridTaps {
  int count = 0;
  int64_t index[kMostTaps];
  A weight[kMostTaps];
  A slope[kMostTaps][3]; // by x, y, z
};

// Taps of the point (x, y[, z]) in [-1, 1]; any number is allowed. Slopes only when asked for.
template <class A>
void grid_taps(const GridGeometry& g, const A* point, bool slopes, GridTaps<A>& taps);

extern template void grid_taps<c10::Half>(const GridGeometry&, const c10::Half*, bool,
                                          GridTaps<c10::Half>&);
extern template void grid_taps<c10::BFloat16>(const GridGeometry&, const c10::BFloat16*, bool,
                                              GridTaps<c10::BFloat16>&);
extern template void grid_taps<float>(const GridGeometry&, const float*, bool, GridTaps<float>&);
extern template void grid_taps<double>(const GridGeometry&, const double*, bool, GridTaps<double>&);

} // namespace at::native::interpolate
