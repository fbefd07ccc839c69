// Loops between real numbers and levels, per instruction set. The arithmetic is fixed, because
// results of quantized programs are compared bit by bit: a level is the real number times the
// reciprocal of the scale, plus the zero point, both rounded to float32, then rounded half to even
// and limited.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>

namespace at::quantized::levels {

// How a run of elements is scaled; zero points may be real (Scheme::PerChannelFloat).
struct Scaling {
  float scale;
  float zero_point;
};

// The three dtypes whose elements have bytes of their own.
enum Kind { kUnsigned8, kSigned8, kSigned32, kKinds };

struct Table {
  // levels[i] = limit(round(values[i] / scale + zero_point)).
  void (*quantize[kKinds])(const float* values, void* levels, int64_t n, Scaling scaling) = {};
  // values[i] = (levels[i] - zero_point) * scale.
  void (*dequantize[kKinds])(const void* levels, float* values, int64_t n, Scaling scaling) = {};
  // The least and the greatest value; NaN where there is one.
  void (*bounds)(const float* values, int64_t n, float* least, float* greatest) = nullptr;
};
CRESSET_ISA_TABLE(Table);

} // namespace at::quantized::levels
