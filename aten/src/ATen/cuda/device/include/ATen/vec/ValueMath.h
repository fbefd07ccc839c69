// Namespace vm on the device: the maths that functors are written in, for scalars. Included by
// device programs in place of the host's header of the same name, so that the functors of
// native/pointwise/ compile unchanged. Real functions are CUDA's own (the accurate ones), complex
// ones are in ComplexMath.cuh.
#pragma once

#include <ATen/cuda/device/Prelude.cuh>

#define CRESSET_ISA device
#define CRESSET_FN __device__ __forceinline__ static
#define CRESSET_VM __device__ __forceinline__

// Functors name registers to choose a faster formula for them; there are none here.
namespace at::vec {
template <class T> struct Vec;
template <class T> using opmath_t = at::device::opmath_t<T>;
template <class V> struct ElementOf { using type = V; };
template <class T> struct ElementOf<c10::complex<T>> { using type = c10::complex<T>; };
template <class V> using element_t = typename ElementOf<V>::type;
template <class T> inline constexpr bool is_vec_v = false;
} // namespace at::vec

namespace at::vm {
inline namespace CRESSET_ISA {

using c10::complex;
using c10::is_complex_v;
using vec::element_t;
using vec::is_vec_v;
template <class V> using element_of_complex_t = typename V::value_type;

template <class T> inline constexpr bool is_floating_v = false;
template <> inline constexpr bool is_floating_v<float> = true;
template <> inline constexpr bool is_floating_v<double> = true;

template <class T> CRESSET_VM T select(bool condition, T a, T b) { return condition ? a : b; }

#define CRESSET_VM_UNARY(name, function)                                                           \
  CRESSET_VM float name(float x) { return ::function##f(x); }                                      \
  CRESSET_VM double name(double x) { return ::function(x); }
#define CRESSET_VM_BINARY(name)                                                                    \
  CRESSET_VM float name(float x, float y) { return ::name##f(x, y); }                              \
  CRESSET_VM double name(double x, double y) { return ::name(x, y); }
CRESSET_VM_UNARY(exp, exp)
CRESSET_VM_UNARY(log, log)
CRESSET_VM_UNARY(sqrt, sqrt)
CRESSET_VM_UNARY(sin, sin)
CRESSET_VM_UNARY(cos, cos)
CRESSET_VM_UNARY(tan, tan)
CRESSET_VM_UNARY(asin, asin)
CRESSET_VM_UNARY(acos, acos)
CRESSET_VM_UNARY(atan, atan)
CRESSET_VM_UNARY(sinh, sinh)
CRESSET_VM_UNARY(cosh, cosh)
CRESSET_VM_UNARY(tanh, tanh)
CRESSET_VM_UNARY(asinh, asinh)
CRESSET_VM_UNARY(acosh, acosh)
CRESSET_VM_UNARY(atanh, atanh)
CRESSET_VM_UNARY(exp2, exp2)
CRESSET_VM_UNARY(expm1, expm1)
CRESSET_VM_UNARY(log1p, log1p)
CRESSET_VM_UNARY(log2, log2)
CRESSET_VM_UNARY(log10, log10)
CRESSET_VM_UNARY(erf, erf)
CRESSET_VM_UNARY(erfc, erfc)
CRESSET_VM_UNARY(tgamma, tgamma)
CRESSET_VM_UNARY(lgamma, lgamma)
CRESSET_VM_UNARY(floor, floor)
CRESSET_VM_UNARY(ceil, ceil)
CRESSET_VM_UNARY(trunc, trunc)
CRESSET_VM_UNARY(round_even, rint)
CRESSET_VM_UNARY(abs, fabs)
CRESSET_VM_BINARY(atan2)
CRESSET_VM_BINARY(copysign)
CRESSET_VM_BINARY(fmod)
CRESSET_VM_BINARY(hypot)
CRESSET_VM_BINARY(nextafter)
CRESSET_VM_BINARY(pow)
#undef CRESSET_VM_UNARY
#undef CRESSET_VM_BINARY

CRESSET_VM float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
CRESSET_VM double fma(double a, double b, double c) { return ::fma(a, b, c); }

template <class T> CRESSET_VM bool isnan(T x) {
  if constexpr (is_complex_v<T>) {
    return x.real_ != x.real_ || x.imag_ != x.imag_;
  } else {
    return x != x;
  }
}
template <class T> CRESSET_VM bool isinf(T x) {
  if constexpr (is_complex_v<T>) {
    return vm::isinf(x.real_) || vm::isinf(x.imag_);
  } else if constexpr (is_floating_v<T>) {
    return vm::abs(x) == c10::numeric_limits<T>::infinity();
  } else {
    return false;
  }
}
template <class T> CRESSET_VM bool isfinite(T x) {
  if constexpr (is_complex_v<T>) {
    return vm::isfinite(x.real_) && vm::isfinite(x.imag_);
  } else if constexpr (is_floating_v<T>) {
    return vm::abs(x) < c10::numeric_limits<T>::infinity();
  } else {
    return true;
  }
}
CRESSET_VM bool signbit(float x) { return __builtin_bit_cast(int, x) < 0; }
CRESSET_VM bool signbit(double x) { return __builtin_bit_cast(long long, x) < 0; }
template <class T, class = decltype(~T())> CRESSET_VM bool signbit(T x) { return x < T(0); }

// Integers: the most negative number is its own absolute value, as wrapping gives.
template <class T, class = decltype(~T())> CRESSET_VM T abs(T x) {
  return x < T(0) ? static_cast<T>(T(0) - x) : x;
}

// a * b + c, with one rounding for real floating numbers.
template <class V> CRESSET_VM V muladd(V a, V b, V c) {
  if constexpr (is_floating_v<V>) {
    return vm::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

// Named in the branches that functors take for registers; never instantiated.
namespace detail {
template <class V> CRESSET_VM V exp_in_range(V x);
}

} // namespace CRESSET_ISA
} // namespace at::vm

namespace at::native::fn {
inline namespace CRESSET_ISA {
namespace detail {
template <class V> CRESSET_VM V normal_tail(V x);
template <class V> CRESSET_VM V limited_abs(V x);
} // namespace detail
} // namespace CRESSET_ISA
} // namespace at::native::fn

#include <ATen/cuda/device/ComplexMath.cuh>

// The compiler's names of the Bessel functions.
#define __builtin_j0 ::j0
#define __builtin_j1 ::j1
#define __builtin_y0 ::y0
#define __builtin_y1 ::y1
