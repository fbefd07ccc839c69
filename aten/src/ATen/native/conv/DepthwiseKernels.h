// The inner loops of depthwise convolutions over padded planes, per instruction set. With a plane
// that carries its padding there is no edge to look after: each output row is a sum of shifted
// input rows, kept in registers.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::depthwise {

// Elements that may be read behind the last row of a padded plane.
constexpr int64_t kSlack = 64;

// Output element (y, x) meets padded[y * row_step + x + offsets[k]] with weight k. Small sides are
// contiguous.
struct PlaneShape {
  int64_t rows, cols, row_step, taps;
  const int64_t* offsets;
};

// out[y][x] = bias + sum over k of weight[k] * padded[...]; `bias` may be null.
using ForwardFn = void (*)(const PlaneShape& shape, const void* padded, const void* weight,
                           const void* bias, void* out);
// sums[k] += sum over y, x of grad[y][x] * padded[...]
using WeightFn = void (*)(const PlaneShape& shape, const void* padded, const void* grad,
                          void* sums);

struct Table {
  ForwardFn forward[c10::NumScalarTypes] = {};
  WeightFn weight[c10::NumScalarTypes] = {};
};

// For float and double only.
CRESSET_ISA_TABLE(Table);

} // namespace at::native::depthwise
