// vm for registers, the logarithms and what is built from them. x = 2^e m with m in
// [sqrt(1/2), sqrt(2)); with f = m - 1 and s = f / (2 + f), log m = f - f^2/2 + s (f^2/2 + R(s^2)),
// an exact rearrangement of 2 atanh(s) that keeps the leading term free of rounding. R is a
// Chebyshev fit (relative error 2e-11 for float, 3e-20 for double).
#pragma once

#include <ATen/vec/VecExp.h>

namespace at::vm {
inline namespace CRESSET_ISA {

namespace detail {

template <class T> struct LogConstants;
template <> struct LogConstants<float> {
  using Unsigned = unsigned;
  static constexpr float kSubnormalScale = 8388608.0f; // 2^23
  static constexpr unsigned kSqrtHalf = 0x3f3504f3u, kOne = 0x3f800000u, kMask = 0x7fffffu;
  static constexpr float kR[] = {0.666666666f, 0.400001226f, 0.285507364f, 0.23332763f};
};
template <> struct LogConstants<double> {
  using Unsigned = unsigned long;
  static constexpr double kSubnormalScale = 4503599627370496.0; // 2^52
  static constexpr unsigned long kSqrtHalf = 0x3fe6a09e667f3bcdul, kOne = 0x3ff0000000000000ul,
                                 kMask = 0xffffffffffffful;
  static constexpr double kR[] = {0.6666666666666666, 0.4000000000000089, 0.28571428570795937,
                                  0.2222222239345263, 0.181817954545265,  0.15386249788196105,
                                  0.1326850331279476, 0.13089445145246312};
};

// x = 2^exponent * (1 + f), for positive finite x.
template <class T> struct LogParts {
  Vec<T> f;
  Vec<T> exponent;
};
template <class T> C10_ALWAYS_INLINE LogParts<T> split_log(Vec<T> x) {
  using C = LogConstants<T>;
  using E = ExpConstants<T>;
  using U = typename Vec<typename C::Unsigned>::Raw;
  const Mask<T> tiny = x < Vec<T>(c10::numeric_limits<T>::min());
  const Vec<T> scaled = select(tiny, x * Vec<T>(C::kSubnormalScale), x);
  const U bits = (U)scaled.v + (C::kOne - C::kSqrtHalf);
  const Vec<T> m = (typename Vec<T>::Raw)((bits & C::kMask) + C::kSqrtHalf);
  // A small integer added to the bits of kMagic becomes that number once kMagic is subtracted.
  const Vec<T> magic(E::kMagic);
  const Vec<T> biased = Vec<T>((typename Vec<T>::Raw)((U)magic.v + (bits >> E::kMantissa))) - magic;
  const Vec<T> bias = select(tiny, Vec<T>(T(E::kBias + E::kMantissa)), Vec<T>(T(E::kBias)));
  return {m - Vec<T>(T(1)), biased - bias};
}

// s (f^2/2 + R): what is added to f - f^2/2 to give log(1 + f).
template <class T> C10_ALWAYS_INLINE Vec<T> log_tail(Vec<T> f, Vec<T> half_square) {
  const Vec<T> s = f / (Vec<T>(T(2)) + f);
  const Vec<T> z = s * s;
  return s * (half_square + z * poly(z, LogConstants<T>::kR));
}

// Puts the values at and beyond the ends of (0, infinity) into r.
template <class T> C10_ALWAYS_INLINE Vec<T> log_edges(Vec<T> x, Vec<T> r) {
  const Vec<T> inf(c10::numeric_limits<T>::infinity()), zero(T(0));
  r = select(x < inf, r, x); // infinity and NaN are their own logarithm
  r = select(x < zero, Vec<T>(c10::numeric_limits<T>::quiet_NaN()), r);
  return select(x == zero, -inf, r);
}

} // namespace detail

template <class T> C10_ALWAYS_INLINE Vec<T> log(Vec<T> x) {
  using E = detail::ExpConstants<T>;
  const auto parts = detail::split_log(x);
  const Vec<T> half_square = parts.f * parts.f * Vec<T>(T(0.5));
  const Vec<T> tail =
      fma(parts.exponent, Vec<T>(E::kLn2Lo), detail::log_tail(parts.f, half_square));
  const Vec<T> r = fma(parts.exponent, Vec<T>(E::kLn2Hi), parts.f - (half_square - tail));
  return detail::log_edges(x, r);
}

C10_ALWAYS_INLINE Vec<double> log2(Vec<double> x) {
  const auto parts = detail::split_log(x);
  const Vec<double> half_square = parts.f * parts.f * Vec<double>(0.5);
  const Vec<double> l = parts.f - (half_square - detail::log_tail(parts.f, half_square));
  return detail::log_edges(x, fma(l, Vec<double>(c10::log2_e<double>), parts.exponent));
}
C10_ALWAYS_INLINE Vec<float> log2(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::log2(a); });
}

// double keeps the C library: a product with log10(e) would miss exact powers of ten.
C10_ALWAYS_INLINE Vec<double> log10(Vec<double> x) {
  return map_lanes(x, [](double a) { return vm::log10(a); });
}
C10_ALWAYS_INLINE Vec<float> log10(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::log(a) * Vec<double>(c10::log10_e<double>); });
}

// log(1 + x), with what 1 + x loses to rounding added back.
template <class T> C10_ALWAYS_INLINE Vec<T> log1p(Vec<T> x) {
  const Vec<T> one(T(1)), inf(c10::numeric_limits<T>::infinity());
  const Vec<T> u = one + x;
  const Vec<T> r = vm::log(u) + (x - (u - one)) / u;
  const Vec<T> corrected = select(x == -one, -inf, r);
  return select((x == Vec<T>(T(0))) | (x == inf), x, corrected);
}

C10_ALWAYS_INLINE Vec<double> asinh(Vec<double> x) {
  const Vec<double> a = abs(x), one(1.0);
  const Vec<double> square = a * a;
  const Vec<double> small = vm::log1p(a + square / (one + vm::sqrt(one + square)));
  const Vec<double> large = vm::log(a) + Vec<double>(c10::ln_2<double>);
  return copysign(select(a > Vec<double>(1e9), large, small), x);
}
C10_ALWAYS_INLINE Vec<double> acosh(Vec<double> x) {
  const Vec<double> t = x - Vec<double>(1.0);
  const Vec<double> small = vm::log1p(t + vm::sqrt((t + t) + t * t));
  const Vec<double> large = vm::log(x) + Vec<double>(c10::ln_2<double>);
  const Vec<double> r = select(x > Vec<double>(1e9), large, small);
  return select(t < Vec<double>(0.0), Vec<double>(c10::numeric_limits<double>::quiet_NaN()), r);
}
C10_ALWAYS_INLINE Vec<double> atanh(Vec<double> x) {
  const Vec<double> a = abs(x), one(1.0);
  return copysign(vm::log1p((a + a) / (one - a)) * Vec<double>(0.5), x);
}
C10_ALWAYS_INLINE Vec<float> asinh(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::asinh(a); });
}
C10_ALWAYS_INLINE Vec<float> acosh(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::acosh(a); });
}
C10_ALWAYS_INLINE Vec<float> atanh(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::atanh(a); });
}

namespace detail {
// |x|^y to float accuracy: 2^(y log2 |x|) with polynomials just long enough. Arguments come from
// floats, so that nothing here is subnormal and the exponent may simply be clamped.
C10_ALWAYS_INLINE Vec<double> pow_magnitude(Vec<double> a, Vec<double> y) {
  static constexpr double kR[] = {0.666666666, 0.400001226, 0.285507364, 0.23332763};
  static constexpr double kExp[] = {0.500000001,   0.166666667, 0.0416664649,
                                    0.00833331093, 0.001393365, 0.000198909908};
  using C = LogConstants<double>;
  using U = Vec<unsigned long>::Raw;
  const Vec<double> magic(ExpConstants<double>::kMagic);
  const U bits = (U)a.v + (C::kOne - C::kSqrtHalf);
  const Vec<double> f =
      Vec<double>((Vec<double>::Raw)((bits & C::kMask) + C::kSqrtHalf)) - Vec<double>(1.0);
  const Vec<double> exponent =
      Vec<double>((Vec<double>::Raw)((U)magic.v + (bits >> 52))) - (magic + Vec<double>(1023.0));
  const Vec<double> s = f / (Vec<double>(2.0) + f);
  const Vec<double> z = s * s;
  const Vec<double> log_m = fma(s * z, poly(z, kR), s + s);
  Vec<double> power = y * fma(log_m, Vec<double>(c10::log2_e<double>), exponent);
  power = clamp_keeping_nan(power, -300.0, 300.0);
  const Vec<double> shifted = power + magic;
  const Vec<double> r = (power - (shifted - magic)) * Vec<double>(c10::ln_2<double>);
  const Vec<double> p = fma(r * r, poly(r, kExp), r) + Vec<double>(1.0);
  return p * pow2<double>(as_int(shifted) - as_int(magic));
}
// The sign and the special cases of the C library's pow.
C10_ALWAYS_INLINE Vec<double> pow_for_float(Vec<double> x, Vec<double> y) {
  const Vec<double> one(1.0), zero(0.0), half(0.5), inf(c10::numeric_limits<double>::infinity());
  const Vec<double> a = abs(x);
  const Mask<double> whole = vm::trunc(y) == y;
  const Mask<double> odd = whole & (vm::trunc(y * half) != y * half);
  Vec<double> r = pow_magnitude(a, y);
  r = select((a == zero) | (a == inf), select((a == zero) ^ (y < zero), zero, inf), r);
  r = select(a == one, one, r); // also where y is infinite
  r = select(signbit(x) & odd, -r, r);
  const Mask<double> undefined = (x < zero) & !whole & isfinite(x);
  r = select(undefined, Vec<double>(c10::numeric_limits<double>::quiet_NaN()), r);
  r = select(isnan(x) | isnan(y), x + y, r);
  return select((y == zero) | (x == one), one, r);
}
} // namespace detail

C10_ALWAYS_INLINE Vec<float> pow(Vec<float> x, Vec<float> y) {
  return in_double(x, y, [](Vec<double> a, Vec<double> b) { return detail::pow_for_float(a, b); });
}
C10_ALWAYS_INLINE Vec<double> pow(Vec<double> x, Vec<double> y) {
  return map_lanes(x, y, [](double a, double b) { return vm::pow(a, b); });
}

} // namespace CRESSET_ISA
} // namespace at::vm
