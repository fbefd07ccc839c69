// The arguments of RandomFill.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

enum Distribution : int32_t {
  kUniform, // [a, b)
  kNormal,  // mean a, deviation b
  kLogNormal,
  kExponential, // rate a
  kCauchy,      // median a, scale b
  kGeometric,   // probability a
  kBernoulli,   // probability a
  kInteger,     // base + number mod range; range 0: 2^64
};

struct RandomSettings {
  PhiloxState state;
  int64_t n = 0;
  double a = 0, b = 0;
  uint64_t range = 0;
  int64_t base = 0;
  int32_t distribution = kUniform;
  int32_t wide = 0; // two elements per group
};
CRESSET_LAYOUT(RandomSettings, 72, wide, 68);

} // namespace at::device
