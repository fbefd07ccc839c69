// Where a sample of a grid lies in the input: up to 16 elements with their weights. One description
// serves two and three dimensions and every mode. GridRows.h finds the taps of many points for
// float and double; here are those of the half types, point by point.
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
};

// Taps of the point (x, y[, z]) in [-1, 1]; any number is allowed.
template <class A> void grid_taps(const GridGeometry& g, const A* point, GridTaps<A>& taps);

extern template void grid_taps<c10::Half>(const GridGeometry&, const c10::Half*,
                                          GridTaps<c10::Half>&);
extern template void grid_taps<c10::BFloat16>(const GridGeometry&, const c10::BFloat16*,
                                              GridTaps<c10::BFloat16>&);

} // namespace at::native::interpolate
