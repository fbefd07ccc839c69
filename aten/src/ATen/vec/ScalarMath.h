// The scalar half of namespace vm, the maths that functors are written in: float and double through
// the C library (as compiler builtins, so that no header is needed), integers where the operation
// means something, complex numbers through the C library's complex functions, which define every
// corner (infinities, signed zeros, branch cuts).
#pragma once

#include <ATen/vec/Vec.h>
#include <c10/util/MathConstants.h>
#include <c10/util/NumericLimits.h>
#include <c10/util/complex.h>

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

template <class T> C10_ALWAYS_INLINE T select(bool condition, T a, T b) {
  return condition ? a : b;
}

#define CRESSET_VM_UNARY(name)                                                                     \
  C10_ALWAYS_INLINE float name(float x) { return __builtin_##name##f(x); }                         \
  C10_ALWAYS_INLINE double name(double x) { return __builtin_##name(x); }                          \
  C10_ALWAYS_INLINE complex<float> name(complex<float> x) {                                        \
    return detail::from_c(__builtin_c##name##f(detail::to_c(x)));                                  \
  }                                                                                                \
  C10_ALWAYS_INLINE complex<double> name(complex<double> x) {                                      \
    return detail::from_c(__builtin_c##name(detail::to_c(x)));                                     \
  }
#define CRESSET_VM_REAL_UNARY(name, function)                                                      \
  C10_ALWAYS_INLINE float name(float x) { return __builtin_##function##f(x); }                     \
  C10_ALWAYS_INLINE double name(double x) { return __builtin_##function(x); }
#define CRESSET_VM_REAL_BINARY(name)                                                               \
  C10_ALWAYS_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); }             \
  C10_ALWAYS_INLINE double name(double x, double y) { return __builtin_##name(x, y); }

namespace detail {
C10_ALWAYS_INLINE __complex__ float to_c(complex<float> x) {
  __complex__ float z;
  __real__ z = x.real_;
  __imag__ z = x.imag_;
  return z;
}
C10_ALWAYS_INLINE __complex__ double to_c(complex<double> x) {
  __complex__ double z;
  __real__ z = x.real_;
  __imag__ z = x.imag_;
  return z;
}
C10_ALWAYS_INLINE complex<float> from_c(__complex__ float z) { return {__real__ z, __imag__ z}; }
C10_ALWAYS_INLINE complex<double> from_c(__complex__ double z) { return {__real__ z, __imag__ z}; }
} // namespace detail

CRESSET_VM_UNARY(exp)
CRESSET_VM_UNARY(log)
CRESSET_VM_UNARY(sqrt)
CRESSET_VM_UNARY(sin)
CRESSET_VM_UNARY(cos)
CRESSET_VM_UNARY(tan)
CRESSET_VM_UNARY(asin)
CRESSET_VM_UNARY(acos)
CRESSET_VM_UNARY(atan)
CRESSET_VM_UNARY(sinh)
CRESSET_VM_UNARY(cosh)
CRESSET_VM_UNARY(tanh)
CRESSET_VM_UNARY(asinh)
CRESSET_VM_UNARY(acosh)
CRESSET_VM_UNARY(atanh)

CRESSET_VM_REAL_UNARY(exp2, exp2)
CRESSET_VM_REAL_UNARY(expm1, expm1)
CRESSET_VM_REAL_UNARY(log1p, log1p)
CRESSET_VM_REAL_UNARY(log2, log2)
CRESSET_VM_REAL_UNARY(log10, log10)
CRESSET_VM_REAL_UNARY(erf, erf)
CRESSET_VM_REAL_UNARY(erfc, erfc)
CRESSET_VM_REAL_UNARY(tgamma, tgamma)
CRESSET_VM_REAL_UNARY(floor, floor)
CRESSET_VM_REAL_UNARY(ceil, ceil)
CRESSET_VM_REAL_UNARY(trunc, trunc)
CRESSET_VM_REAL_UNARY(round_even, nearbyint)
CRESSET_VM_REAL_UNARY(abs, fabs)

CRESSET_VM_REAL_BINARY(atan2)
CRESSET_VM_REAL_BINARY(copysign)
CRESSET_VM_REAL_BINARY(fmod)
CRESSET_VM_REAL_BINARY(hypot)
CRESSET_VM_REAL_BINARY(nextafter)
CRESSET_VM_REAL_BINARY(pow)

#undef CRESSET_VM_UNARY
#undef CRESSET_VM_REAL_UNARY
#undef CRESSET_VM_REAL_BINARY

// The reentrant forms: lgamma itself writes the sign of gamma to a global.
C10_ALWAYS_INLINE float lgamma(float x) {
  int sign;
  return __builtin_lgammaf_r(x, &sign);
}
C10_ALWAYS_INLINE double lgamma(double x) {
  int sign;
  return __builtin_lgamma_r(x, &sign);
}

C10_ALWAYS_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
C10_ALWAYS_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <class T> C10_ALWAYS_INLINE bool isnan(T x) {
  if constexpr (is_complex_v<T>) {
    return x.real_ != x.real_ || x.imag_ != x.imag_;
  } else {
    return x != x;
  }
}
template <class T> C10_ALWAYS_INLINE bool isinf(T x) {
  if constexpr (is_complex_v<T>) {
    return vm::isinf(x.real_) || vm::isinf(x.imag_);
  } else if constexpr (is_floating_v<T>) {
    return __builtin_isinf(x);
  } else {
    return false;
  }
}
template <class T> C10_ALWAYS_INLINE bool isfinite(T x) {
  if constexpr (is_complex_v<T>) {
    return __builtin_isfinite(x.real_) && __builtin_isfinite(x.imag_);
  } else if constexpr (is_floating_v<T>) {
    return __builtin_isfinite(x);
  } else {
    return true;
  }
}
C10_ALWAYS_INLINE bool signbit(float x) { return __builtin_signbit(x); }
C10_ALWAYS_INLINE bool signbit(double x) { return __builtin_signbit(x); }

template <class T, class = decltype(~T())> C10_ALWAYS_INLINE bool signbit(T x) { return x < T(0); }

// Integers: the most negative number is its own absolute value, as wrapping gives.
template <class T, class = decltype(~T())> C10_ALWAYS_INLINE T abs(T x) {
  return x < T(0) ? static_cast<T>(T(0) - x) : x;
}

// ---- complex ------------------------------------------------------------------------------------

// The magnitude, as a real number.
template <class T> C10_ALWAYS_INLINE T magnitude(complex<T> x) {
  return vm::hypot(x.real_, x.imag_);
}
template <class T> C10_ALWAYS_INLINE complex<T> pow(complex<T> x, complex<T> y) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return detail::from_c(__builtin_cpowf(detail::to_c(x), detail::to_c(y)));
  } else {
    return detail::from_c(__builtin_cpow(detail::to_c(x), detail::to_c(y)));
  }
}
template <class T> C10_ALWAYS_INLINE complex<T> exp2(complex<T> x) {
  return vm::exp(complex<T>(x.real_ * c10::ln_2<T>, x.imag_ * c10::ln_2<T>));
}
template <class T> C10_ALWAYS_INLINE complex<T> log2(complex<T> x) {
  const complex<T> y = vm::log(x);
  return {y.real_ * c10::log2_e<T>, y.imag_ * c10::log2_e<T>};
}
template <class T> C10_ALWAYS_INLINE complex<T> log10(complex<T> x) {
  const complex<T> y = vm::log(x);
  return {y.real_ * c10::log10_e<T>, y.imag_ * c10::log10_e<T>};
}
// Without cancellation in the real part: e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y/2).
template <class T> C10_ALWAYS_INLINE complex<T> expm1(complex<T> x) {
  const T half_sin = vm::sin(x.imag_ / 2);
  const T grow = vm::expm1(x.real_);
  return {grow * vm::cos(x.imag_) - 2 * half_sin * half_sin, vm::exp(x.real_) * vm::sin(x.imag_)};
}
// log |1 + x| through log1p of |1 + x|^2 - 1 where that is small.
template <class T> C10_ALWAYS_INLINE complex<T> log1p(complex<T> x) {
  const T re = x.real_, im = x.imag_;
  const T angle = vm::atan2(im, 1 + re);
  if (vm::abs(re) < T(0.5) && vm::abs(im) < T(0.5)) {
    return {vm::log1p(re * (2 + re) + im * im) / 2, angle};
  }
  return {vm::log(vm::hypot(1 + re, im)), angle};
}

} // namespace CRESSET_ISA
} // namespace at::vm
