// vm for registers, trigonometry. sin and cos subtract the nearest multiple of pi/2, kept in three
// doubles; with a fused multiply-add each subtraction rounds relative to its own result, so that
// even arguments next to a multiple of pi/2 stay accurate. Very large arguments, and machines
// without the instruction, take the C library lane by lane. float computes in double, but for the
// sine and cosine of arguments below 8192: there the first parts of pi/2 are so short that their
// products are exact (largest error measured: 1.5 units in the last place).
// Polynomials are Chebyshev fits with relative error below 2e-17 (2e-11 where the result is float).
// Largest errors measured in double: sin and cos 1.5 units in the last place, tan 2.7, asin 2.1,
// atan and atan2 1.8.
#pragma once

#include <ATen/vec/VecBasic.h>

namespace at::vm {
inline namespace CRESSET_ISA {

namespace detail {

inline constexpr double kPi2[] = {1.5707963267948966, 6.123233995736766e-17,
                                  -1.4973849048591698e-33};
inline constexpr double kTrigLimit = 1e8;

inline constexpr double kSin[] = {-0.16666666666666666,    0.008333333333330946,
                                  -0.0001984126983675497,  2.755731610068303e-06,
                                  -2.5051131455427946e-08, 1.591810123027412e-10};
inline constexpr double kCos[] = {0.041666666666666664,   -0.0013888888888887395,
                                  2.4801587298763433e-05, -2.7557317270560326e-07,
                                  2.0876146024689747e-09, -1.1382614868556325e-11};
// Enough for a result that is rounded to float: relative error 2e-11.
inline constexpr double kSinShort[] = {-0.16666666663853044, 0.008333331873837089,
                                       -0.00019840086263755443, 2.7249864655139585e-06};
inline constexpr double kCosShort[] = {0.04166666666431933, -0.0013888887671288108,
                                       2.480059998353171e-05, -2.7300908167996537e-07};
inline constexpr double kAtan[] = {
    -0.3333333333333333,    0.1999999999999753,    -0.14285714285384132,    0.11111111093490827,
    -0.09090908590891934,   0.07692298971033217,   -0.06666564699289104,    0.05881506877793656,
    -0.052579733342841106,  0.04737749579527779,   -0.04260356632601652,    0.03749486812535247,
    -0.031277189066996385,  0.023696731580048622,  -0.015535152475414177,   0.008368931178450162,
    -0.0034958859739163094, 0.0010496035084968515, -0.00019996189377901382, 1.806195461861215e-05};
inline constexpr double kAsin[] = {
    0.16666666666666666,   0.07500000000000119,  0.04464285714255019,   0.030381944475693704,
    0.022372157435623815,  0.017352816768546473, 0.013963775787848137,  0.011566511821890942,
    0.009621402747344831,  0.009322101501082774, 0.0030350071727267636, 0.019579201619744684,
    -0.019277545928584553, 0.029635026263548546};

// x = quadrant * pi/2 + r with |r| <= pi/4.
struct TrigParts {
  Vec<double> r;
  Vec<long> quadrant;
};
C10_ALWAYS_INLINE TrigParts reduce_trig(Vec<double> x) {
  const Vec<double> magic(6755399441055744.0); // 1.5 * 2^52: rounds and leaves the integer's bits
  const Vec<double> shifted = fma(x, Vec<double>(0.6366197723675814), magic);
  const Vec<double> n = shifted - magic;
  Vec<double> r = fma(n, Vec<double>(-kPi2[0]), x);
  r = fma(n, Vec<double>(-kPi2[1]), r);
  r = fma(n, Vec<double>(-kPi2[2]), r);
  return {r, as_int(shifted)};
}
template <int kCount>
C10_ALWAYS_INLINE Vec<double> sin_poly(Vec<double> r, const double (&c)[kCount]) {
  const Vec<double> z = r * r;
  return fma(r * z, poly(z, c), r);
}
// 1 - z/2 + z^2 C(z), where the rounding error of 1 - z/2 is added back.
template <int kCount>
C10_ALWAYS_INLINE Vec<double> cos_poly(Vec<double> r, const double (&c)[kCount]) {
  const Vec<double> one(1.0), z = r * r, half = z * Vec<double>(0.5);
  const Vec<double> w = one - half;
  return w + fma(z * z, poly(z, c), (one - w) - half);
}
C10_ALWAYS_INLINE Mask<double> has_bit(Vec<long> quadrant, long bit) {
  return {((quadrant & Vec<long>(bit)) != Vec<long>(0l)).m};
}
C10_ALWAYS_INLINE Vec<double> negate_if_bit1(Vec<double> x, Vec<long> quadrant) {
  return as_float<double>(as_int(x) ^ Vec<long>((quadrant.v & 2) << 62));
}
template <int kShift, int kSinCount, int kCosCount> C10_ALWAYS_INLINE Vec<double>
sine(Vec<double> x, const double (&sin_c)[kSinCount], const double (&cos_c)[kCosCount]) {
  const TrigParts parts = reduce_trig(x);
  const Vec<long> quadrant = parts.quadrant.v + kShift;
  const Vec<double> r =
      select(has_bit(quadrant, 1), cos_poly(parts.r, cos_c), sin_poly(parts.r, sin_c));
  const Vec<double> result = negate_if_bit1(r, quadrant);
  return kShift == 0 ? select(x == Vec<double>(0.0), x, result) : result; // keeps -0
}
template <int kSinCount, int kCosCount> C10_ALWAYS_INLINE Vec<double>
tangent(Vec<double> x, const double (&sin_c)[kSinCount], const double (&cos_c)[kCosCount]) {
  const TrigParts parts = reduce_trig(x);
  const Vec<double> s = sin_poly(parts.r, sin_c), c = cos_poly(parts.r, cos_c);
  const Mask<double> odd = has_bit(parts.quadrant, 1);
  return select(x == Vec<double>(0.0), x, select(odd, -c, s) / select(odd, s, c));
}

// Lanes do not depend on each other, or a result would depend on where its element lies: those for
// which the vector reduction does not hold take the library's value. NaN passes through it.
template <class T, class Quick, class Library>
C10_ALWAYS_INLINE Vec<T> within_limit(Vec<T> x, Quick quick, Library library) {
#if defined(__FMA__)
  const Vec<T> result = quick(x);
  const Mask<T> beyond = abs(x) > Vec<T>(T(kTrigLimit));
  if (C10_LIKELY(!vec::any(beyond))) return result;
  return select(beyond, map_lanes(x, library), result);
#else
  (void)quick;
  return map_lanes(x, library);
#endif
}

} // namespace detail

C10_ALWAYS_INLINE Vec<double> sin(Vec<double> x) {
  return detail::within_limit(
      x, [](Vec<double> a) { return detail::sine<0>(a, detail::kSin, detail::kCos); },
      [](double a) { return vm::sin(a); });
}
C10_ALWAYS_INLINE Vec<double> cos(Vec<double> x) {
  return detail::within_limit(
      x, [](Vec<double> a) { return detail::sine<1>(a, detail::kSin, detail::kCos); },
      [](double a) { return vm::cos(a); });
}
C10_ALWAYS_INLINE Vec<double> tan(Vec<double> x) {
  return detail::within_limit(
      x, [](Vec<double> a) { return detail::tangent(a, detail::kSin, detail::kCos); },
      [](double a) { return vm::tan(a); });
}
namespace detail {
// pi/2 in parts of 8, 11, 24 and 24 bits: n of 13 bits times the first two is exact, and so are the
// differences.
inline constexpr float kPi2Parts[] = {1.5703125f, 4.837512969970703e-4f, 7.549790126404332e-08f,
                                      -1.7151245100058819e-15f};
inline constexpr float kShortLimit = 8192.0f;
inline constexpr float kSinFloat[] = {-0.16666667f, 0.0083333319f, -0.00019840086f, 2.7249865e-06f};
inline constexpr float kCosFloat[] = {0.041666667f, -0.0013888888f, 2.4800600e-05f,
                                      -2.7300908e-07f};

template <int kShift> C10_ALWAYS_INLINE Vec<float> sine_short(Vec<float> x) {
  const Vec<float> magic(12582912.0f), one(1.0f); // 1.5 * 2^23
  const Vec<float> shifted = fma(x, Vec<float>(0.63661977f), magic);
  const Vec<float> n = magic - shifted;
  Vec<float> r = fma(n, Vec<float>(kPi2Parts[0]), x);
  r = fma(n, Vec<float>(kPi2Parts[1]), r);
  r = fma(n, Vec<float>(kPi2Parts[2]), r);
  r = fma(n, Vec<float>(kPi2Parts[3]), r);
  const Vec<int> quadrant = as_int(shifted).v + kShift;
  const Vec<float> z = r * r, half = z * Vec<float>(0.5f), w = one - half;
  const Vec<float> s = fma(r * z, poly(z, kSinFloat), r);
  const Vec<float> c = w + fma(z * z, poly(z, kCosFloat), (one - w) - half);
  const Mask<float> odd{((quadrant & Vec<int>(1)) != Vec<int>(0)).m};
  const Vec<float> result =
      as_float<float>(as_int(select(odd, c, s)) ^ Vec<int>((quadrant.v & 2) << 30));
  return kShift == 0 ? select(x == Vec<float>(0.0f), x, result) : result; // keeps -0
}

template <int kShift, class Library>
C10_ALWAYS_INLINE Vec<float> sine_float(Vec<float> x, Library library) {
#if defined(__FMA__)
  const Vec<float> quick = sine_short<kShift>(x);
  const Mask<float> large = abs(x) > Vec<float>(kShortLimit);
  if (C10_LIKELY(!vec::any(large))) return quick;
  const auto wide = [](Vec<float> a) {
    return in_double(a, [](Vec<double> b) { return sine<kShift>(b, kSinShort, kCosShort); });
  };
  return select(large, within_limit(x, wide, library), quick);
#else
  return map_lanes(x, library);
#endif
}
} // namespace detail

C10_ALWAYS_INLINE Vec<float> sin(Vec<float> x) {
  return detail::sine_float<0>(x, [](float a) { return vm::sin(a); });
}
C10_ALWAYS_INLINE Vec<float> cos(Vec<float> x) {
  return detail::sine_float<1>(x, [](float a) { return vm::cos(a); });
}
C10_ALWAYS_INLINE Vec<float> tan(Vec<float> x) {
  const auto wide = [](Vec<float> a) {
    return in_double(
        a, [](Vec<double> b) { return detail::tangent(b, detail::kSinShort, detail::kCosShort); });
  };
  return detail::within_limit(x, wide, [](float a) { return vm::tan(a); });
}

namespace detail {
// atan on [0, 1].
C10_ALWAYS_INLINE Vec<double> atan_unit(Vec<double> t) {
  const Vec<double> z = t * t;
  return fma(t * z, poly(z, kAtan), t);
}
// pi/2 - x with the low half of pi/2 included.
C10_ALWAYS_INLINE Vec<double> from_right_angle(Vec<double> x) {
  return Vec<double>(kPi2[0]) - (x - Vec<double>(kPi2[1]));
}
// asin and acos share this: |x| <= 1/2 directly, above through the half-angle formula, where the
// value is asin(sqrt((1 - |x|) / 2)), half the angle to 1.
struct AsinParts {
  Vec<double> p;
  Mask<double> half_angle;
};
C10_ALWAYS_INLINE AsinParts asin_parts(Vec<double> x) {
  const Vec<double> a = abs(x), half(0.5);
  const Mask<double> big = a > half;
  const Vec<double> z = select(big, (Vec<double>(1.0) - a) * half, a * a);
  const Vec<double> t = select(big, vm::sqrt(z), a);
  return {fma(t * z, poly(z, kAsin), t), big};
}
} // namespace detail

C10_ALWAYS_INLINE Vec<double> atan(Vec<double> x) {
  const Vec<double> a = abs(x), one(1.0);
  const Mask<double> big = a > one;
  const Vec<double> p = detail::atan_unit(select(big, one / a, a));
  return copysign(select(big, detail::from_right_angle(p), p), x);
}
C10_ALWAYS_INLINE Vec<double> atan2(Vec<double> y, Vec<double> x) {
  const Vec<double> ay = abs(y), ax = abs(x), one(1.0), zero(0.0);
  const Mask<double> steep = ay > ax;
  const Vec<double> small = select(steep, ax, ay), large = select(steep, ay, ax);
  Vec<double> t = small / large;
  t = select(large == zero, zero, t);              // both zero: angle 0 or pi
  t = select(isinf(small) & isinf(large), one, t); // both infinite: the diagonal
  const Vec<double> p = detail::atan_unit(t);
  Vec<double> r = select(steep, detail::from_right_angle(p), p);
  const Vec<double> pi(2 * detail::kPi2[0]), pi_low(2 * detail::kPi2[1]);
  r = select(signbit(x), pi - (r - pi_low), r);
  r = select(isnan(x) | isnan(y), x + y, r);
  return copysign(r, y);
}
C10_ALWAYS_INLINE Vec<double> asin(Vec<double> x) {
  const auto parts = detail::asin_parts(x);
  const Vec<double> big = detail::from_right_angle(parts.p + parts.p);
  return copysign(select(parts.half_angle, big, parts.p), x);
}
C10_ALWAYS_INLINE Vec<double> acos(Vec<double> x) {
  const auto parts = detail::asin_parts(x);
  const Vec<double> twice = parts.p + parts.p;
  const Vec<double> pi(2 * detail::kPi2[0]), pi_low(2 * detail::kPi2[1]);
  const Vec<double> big = select(signbit(x), pi - (twice - pi_low), twice);
  return select(parts.half_angle, big, detail::from_right_angle(copysign(parts.p, x)));
}

C10_ALWAYS_INLINE Vec<float> atan(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::atan(a); });
}
C10_ALWAYS_INLINE Vec<float> asin(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::asin(a); });
}
C10_ALWAYS_INLINE Vec<float> acos(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::acos(a); });
}
C10_ALWAYS_INLINE Vec<float> atan2(Vec<float> y, Vec<float> x) {
  return in_double(y, x, [](Vec<double> a, Vec<double> b) { return vm::atan2(a, b); });
}

} // namespace CRESSET_ISA
} // namespace at::vm
