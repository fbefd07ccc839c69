// vm for registers, the basic part: selection, sign, rounding, classification. Single instructions
// where the machine has them; the lane loops are for other machines and compilers.
#pragma once

#include <ATen/vec/ScalarMath.h>
#include <ATen/vec/Vec.h>

namespace at::vm {
inline namespace CRESSET_ISA {

using vec::as_float;
using vec::as_int;
using vec::in_double;
using vec::int_of;
using vec::map_lanes;
using vec::Mask;
using vec::select;
using vec::Vec;

namespace detail {
template <class T> inline constexpr int_of<T>
    kSignBit = static_cast<int_of<T>>(static_cast<unsigned long>(1) << (sizeof(T) * 8 - 1));

// Rounding modes of the SSE 4.1 instruction, with the inexact exception suppressed.
enum RoundMode { kNearestEven = 8, kFloor = 9, kCeil = 10, kTrunc = 11 };

template <RoundMode kMode> C10_ALWAYS_INLINE Vec<float> round(Vec<float> x) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_rndscaleps_mask(x.v, kMode, x.v, -1, 4);
#elif defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_roundps256(x.v, kMode);
#else
  return map_lanes(x, [](float a) {
    return kMode == kFloor  ? vm::floor(a)
           : kMode == kCeil ? vm::ceil(a)
                            : (kMode == kTrunc ? vm::trunc(a) : vm::round_even(a));
  });
#endif
}
template <RoundMode kMode> C10_ALWAYS_INLINE Vec<double> round(Vec<double> x) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_rndscalepd_mask(x.v, kMode, x.v, -1, 4);
#elif defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_roundpd256(x.v, kMode);
#else
  return map_lanes(x, [](double a) {
    return kMode == kFloor  ? vm::floor(a)
           : kMode == kCeil ? vm::ceil(a)
                            : (kMode == kTrunc ? vm::trunc(a) : vm::round_even(a));
  });
#endif
}
} // namespace detail

template <class T> C10_ALWAYS_INLINE Vec<T> floor(Vec<T> x) {
  return detail::round<detail::kFloor>(x);
}
template <class T> C10_ALWAYS_INLINE Vec<T> ceil(Vec<T> x) {
  return detail::round<detail::kCeil>(x);
}
template <class T> C10_ALWAYS_INLINE Vec<T> trunc(Vec<T> x) {
  return detail::round<detail::kTrunc>(x);
}
template <class T> C10_ALWAYS_INLINE Vec<T> round_even(Vec<T> x) {
  return detail::round<detail::kNearestEven>(x);
}

C10_ALWAYS_INLINE Vec<float> sqrt(Vec<float> x) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_sqrtps512_mask(x.v, x.v, -1, 4);
#elif defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_sqrtps256(x.v);
#else
  return map_lanes(x, [](float a) { return vm::sqrt(a); });
#endif
}
C10_ALWAYS_INLINE Vec<double> sqrt(Vec<double> x) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_sqrtpd512_mask(x.v, x.v, -1, 4);
#elif defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_sqrtpd256(x.v);
#else
  return map_lanes(x, [](double a) { return vm::sqrt(a); });
#endif
}

// a * b + c with one rounding where the machine has the instruction. Argument reductions that need
// the single rounding test __FMA__ and otherwise go to the C library.
C10_ALWAYS_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_vfmaddps512_mask(a.v, b.v, c.v, -1, 4);
#elif defined(__FMA__) && defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_vfmaddps256(a.v, b.v, c.v);
#else
  return a * b + c;
#endif
}
C10_ALWAYS_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_vfmaddpd512_mask(a.v, b.v, c.v, -1, 4);
#elif defined(__FMA__) && defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_vfmaddpd256(a.v, b.v, c.v);
#else
  return a * b + c;
#endif
}

namespace detail {
// c[0] + c[1] x + c[2] x^2 + ...
template <class T, int kCount> C10_ALWAYS_INLINE Vec<T> poly(Vec<T> x, const T (&c)[kCount]) {
  Vec<T> r(c[kCount - 1]);
#pragma GCC unroll 32
  for (int i = kCount - 2; i >= 0; --i) {
    r = fma(r, x, Vec<T>(c[i]));
  }
  return r;
}
} // namespace detail

template <class T> C10_ALWAYS_INLINE Vec<T> abs(Vec<T> x) {
  if constexpr (is_floating_v<T>) {
    return as_float<T>(as_int(x) & Vec<int_of<T>>(static_cast<int_of<T>>(~detail::kSignBit<T>)));
  } else if constexpr (T(-1) < T(0)) {
    return select(x < Vec<T>(T(0)), -x, x);
  } else {
    return x;
  }
}
template <class T> C10_ALWAYS_INLINE Vec<T> copysign(Vec<T> x, Vec<T> sign) {
  const Vec<int_of<T>> bit(detail::kSignBit<T>);
  return as_float<T>((as_int(x) & ~bit) | (as_int(sign) & bit));
}
template <class T> C10_ALWAYS_INLINE Mask<T> signbit(Vec<T> x) {
  if constexpr (is_floating_v<T>) {
    return {(as_int(x) < Vec<int_of<T>>(int_of<T>(0))).m};
  } else {
    return x < Vec<T>(T(0));
  }
}
template <class T> C10_ALWAYS_INLINE Mask<T> isnan(Vec<T> x) { return x != x; }
template <class T> C10_ALWAYS_INLINE Mask<T> isinf(Vec<T> x) {
  if constexpr (is_floating_v<T>) {
    return abs(x) == Vec<T>(c10::numeric_limits<T>::infinity());
  } else {
    return x != x;
  }
}
template <class T> C10_ALWAYS_INLINE Mask<T> isfinite(Vec<T> x) {
  if constexpr (is_floating_v<T>) {
    return abs(x) < Vec<T>(c10::numeric_limits<T>::infinity());
  } else {
    return x == x;
  }
}

// No vector form of their own: the C library lane by lane.
template <class T> C10_ALWAYS_INLINE Vec<T> erfc(Vec<T> x) {
  return map_lanes(x, [](T a) { return vm::erfc(a); });
}
namespace detail {
template <class T> C10_ALWAYS_INLINE Vec<T> fmod_by_library(Vec<T> x, Vec<T> y) {
  return map_lanes(x, y, [](T a, T b) { return vm::fmod(a, b); });
}
} // namespace detail
// x - n y with n = trunc(x / y) in one rounding is exact while n is. The rounded quotient may have
// reached the next integer, never more, and then the result has the wrong sign: one y is added
// back.
template <class T> C10_ALWAYS_INLINE Vec<T> fmod(Vec<T> x, Vec<T> y) {
#if defined(__FMA__)
  const Vec<T> quotient = x / y;
  const Vec<T> limit(sizeof(T) == sizeof(float) ? T(8388608) : T(4503599627370496));
  if (C10_UNLIKELY(vec::any(abs(quotient) >= limit))) {
    return detail::fmod_by_library(x, y);
  }
  Vec<T> r = fma(-trunc(quotient), y, x);
  const Mask<T> overshot = (r != Vec<T>(T(0))) & (signbit(r) ^ signbit(x));
  r = select(overshot, r + copysign(y, x), r);
  return copysign(select(isinf(y) & isfinite(x), x, r), x);
#else
  return detail::fmod_by_library(x, y);
#endif
}
template <class T> C10_ALWAYS_INLINE Vec<T> nextafter(Vec<T> x, Vec<T> y) {
  return map_lanes(x, y, [](T a, T b) { return vm::nextafter(a, b); });
}

C10_ALWAYS_INLINE Vec<double> hypot(Vec<double> x, Vec<double> y) {
  return map_lanes(x, y, [](double a, double b) { return vm::hypot(a, b); });
}
// In double the squares of floats neither overflow nor lose what matters.
C10_ALWAYS_INLINE Vec<float> hypot(Vec<float> x, Vec<float> y) {
  const Vec<float> r =
      in_double(x, y, [](Vec<double> a, Vec<double> b) { return vm::sqrt(a * a + b * b); });
  return select(isinf(x) | isinf(y), Vec<float>(c10::numeric_limits<float>::infinity()), r);
}

} // namespace CRESSET_ISA
} // namespace at::vm
