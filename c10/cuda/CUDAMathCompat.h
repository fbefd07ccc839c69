// Functions of <cmath> by one name on the host and on the device, for kernels that are written once
// for float and double.
#pragma once
#include <cmath>

#include <c10/macros/Macros.h>

namespace c10::cuda::compat {

#define CRESSET_MATH_1(name)                                                                       \
  C10_HOST_DEVICE inline float name(float x) { return ::name##f(x); }                              \
  C10_HOST_DEVICE inline double name(double x) { return ::name(x); }
#define CRESSET_MATH_2(name)                                                                       \
  C10_HOST_DEVICE inline float name(float x, float y) { return ::name##f(x, y); }                  \
  C10_HOST_DEVICE inline double name(double x, double y) { return ::name(x, y); }

CRESSET_MATH_1(ceil)
CRESSET_MATH_1(cos)
CRESSET_MATH_1(exp)
CRESSET_MATH_1(floor)
CRESSET_MATH_1(log)
CRESSET_MATH_1(sin)
CRESSET_MATH_1(sqrt)
CRESSET_MATH_1(tan)
CRESSET_MATH_1(tanh)
CRESSET_MATH_2(copysign)
CRESSET_MATH_2(pow)
#undef CRESSET_MATH_1
#undef CRESSET_MATH_2

C10_HOST_DEVICE inline float max(float x, float y) { return ::fmaxf(x, y); }
C10_HOST_DEVICE inline double max(double x, double y) { return ::fmax(x, y); }
C10_HOST_DEVICE inline float min(float x, float y) { return ::fminf(x, y); }
C10_HOST_DEVICE inline double min(double x, double y) { return ::fmin(x, y); }
C10_HOST_DEVICE inline float abs(float x) { return ::fabsf(x); }
C10_HOST_DEVICE inline double abs(double x) { return ::fabs(x); }
#if defined(__CUDACC__)
__device__ inline float rsqrt(float x) { return ::rsqrtf(x); }
__device__ inline double rsqrt(double x) { return ::rsqrt(x); }
#endif

} // namespace c10::cuda::compat
