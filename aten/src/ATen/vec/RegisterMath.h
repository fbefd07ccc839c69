// Functions on registers that only the pointwise functors call. They stand apart from ValueMath.h,
// which every kernel file includes, and in a namespace of their own, vm::reg, in which a name that
// has no form here is vm's own: a functor writes reg::tan(x) for any type. Largest errors measured,
// in units in the last place, float / double: erfc 4.3 / 3.2, log2 1.6 / 1.0, tan 2.3, sinh and
// cosh 2.6, atanh 1.9, atan2 1.4 (those for double are vm's).
#pragma once

#include <ATen/vec/ValueMath.h>

namespace at::vm {
inline namespace CRESSET_ISA {
namespace reg {

using vm::detail::clamp_keeping_nan;
using vm::detail::ExpConstants;
using vm::detail::expm1_poly;
using vm::detail::log_edges;
using vm::detail::log_tail;
using vm::detail::poly;
using vm::detail::reduce_exp;
using vm::detail::scale;
using vm::detail::split_log;

// Whether a condition holds anywhere.
C10_ALWAYS_INLINE bool any(bool condition) { return condition; }
template <class T> C10_ALWAYS_INLINE bool any(Mask<T> mask) { return vec::any(mask); }

// f computed in double.
template <class F> C10_ALWAYS_INLINE float in_double(float x, F f) {
  return static_cast<float>(f(static_cast<double>(x)));
}
template <class F> C10_ALWAYS_INLINE double in_double(double x, F f) { return f(x); }
template <class F> C10_ALWAYS_INLINE Vec<float> in_double(Vec<float> x, F f) {
  return vec::in_double(x, f);
}
template <class F> C10_ALWAYS_INLINE Vec<double> in_double(Vec<double> x, F f) { return f(x); }

// ---- the complementary error function
// ------------------------------------------------------------ For x >= 0, e^(x^2) erfc(x) (1 + 2
// x) is a polynomial in t = (x - 3.75) / (x + 3.75), which maps all of [0, infinity) to [-1, 1):
// one Chebyshev fit, computed in 60 digits, serves erfc and its scaled form (relative error 6e-18;
// for float 8e-9, up to 10.5). What x^2 loses to rounding is carried along, because the exponential
// magnifies it.
inline constexpr double kErfcx[] = {
    1.2375126308378275,     -0.14024059858554697,   0.003585415485463775,    0.08227673849014516,
    -0.10880393014171785,   0.09230432116037876,    -0.058693398590212366,   0.028362277418940665,
    -0.009746579552504244,  0.0017556258530017257,  0.0002937136342850081,   -0.0002901540809795271,
    5.1649211390702855e-05, 2.2384240314224437e-05, -1.1444412439171722e-05, -9.735619015182663e-07,
    1.752057970166318e-06,  -5.721597255990987e-08, -2.591069687796658e-07,  2.3261913276696566e-08,
    3.8965452548985966e-08, -3.743568033634583e-09, -5.28428697963142e-09,   3.110310719839165e-10,
    4.434959070009628e-10};
inline constexpr float kErfcxFloat[] = {
    1.27250641f,    -0.0842740025f, -0.0697514622f,  0.115065207f,   -0.0922183225f, 0.0514887101f,
    -0.0211362579f, 0.0061680964f,  -0.00104136547f, -3.7106946e-5f, 5.18962176e-5f};

// e^(a^2) erfc(a) for a from 0 to 10.5 (float) or 1e100 (double).
template <class T> C10_ALWAYS_INLINE Vec<T> erfcx_positive(Vec<T> a) {
  const Vec<T> k(T(3.75)), line = fma(a, Vec<T>(T(2)), Vec<T>(T(1)));
  const Vec<T> t = (a - k) / (a + k);
  if constexpr (sizeof(T) == sizeof(float)) {
    // The fit is in t mapped from [-1, 0.47368421] to [-1, 1].
    return poly(fma(t, Vec<T>(1.35714286f), Vec<T>(0.357142857f)), kErfcxFloat) / line;
  } else {
    return poly(t, kErfcx) / line;
  }
}

// erf of small numbers, for float: x + x P(x^2).
C10_ALWAYS_INLINE Vec<float> erf_near_zero(Vec<float> x) {
  static constexpr float kSmall[] = {0.128379167f,   -0.376126267f,    0.112835947f,  -0.026854212f,
                                     0.00518908742f, -0.000801686429f, 7.87587506e-5f};
  return fma(x, poly(x * x, kSmall), x);
}

template <class T> C10_ALWAYS_INLINE Vec<T> erfc(Vec<T> x) {
#if defined(__FMA__)
  using C = ExpConstants<T>;
  const Vec<T> limit(sizeof(T) == sizeof(float) ? T(10.5) : T(28)), one(T(1));
  Vec<T> a = abs(x);
  a = select(a > limit, limit, a);
  const Vec<T> square = a * a, lost = fma(a, a, -square);
  const auto reduced = reduce_exp(clamp_keeping_nan(-square, C::kLowest, C::kHighest));
  const Vec<T> scaled = erfcx_positive(a) * (one - lost);
  const Vec<T> tail = scale((expm1_poly(reduced.r) + one) * scaled, reduced.n);
  const Vec<T> r = select(x < Vec<T>(T(0)), Vec<T>(T(2)) - tail, tail);
  if constexpr (sizeof(T) == sizeof(float)) {
    return select(a < Vec<T>(0.5f), one - erf_near_zero(x), r);
  } else {
    return select(a == Vec<T>(0.0), one, r); // the fit is one unit off there
  }
#else
  return vm::erfc(x);
#endif
}

// e^(x^2) erfc(x).
C10_ALWAYS_INLINE Vec<double> erfcx(Vec<double> x) {
  const Vec<double> a = abs(x), limit(1e100);
  const Vec<double> inside = erfcx_positive(select(a > limit, limit, a));
  const Vec<double> positive =
      select(a > limit, Vec<double>(0.5641895835477563) / a, inside); // 1 / (a sqrt(pi))
  const Vec<double> square = a * a, lost = fma(a, a, -square);
  const Vec<double> e = vm::exp(square);
  const Vec<double> grown = e + select(isinf(e), Vec<double>(0.0), e * lost);
  return select(x < Vec<double>(0.0), fma(grown, Vec<double>(2.0), -positive), positive);
}

// ---- float without the way through double
// --------------------------------------------------------
template <class V> C10_ALWAYS_INLINE V log2(V x) { return vm::log2(x); }
C10_ALWAYS_INLINE Vec<float> log2(Vec<float> x) {
  const auto parts = split_log(x);
  const Vec<float> half_square = parts.f * parts.f * Vec<float>(0.5f);
  const Vec<float> l = parts.f - (half_square - log_tail(parts.f, half_square));
  return log_edges(x, fma(l, Vec<float>(c10::log2_e<float>), parts.exponent));
}

// In float alone, for arguments up to 1e4: pi/2 in three floats; each fused subtraction is exact or
// rounds relative to its own result. The polynomial is (tan r - r) / r^3 in r^2, relative error
// 2e-8.
C10_ALWAYS_INLINE Vec<float> tangent_in_float(Vec<float> x) {
  static constexpr float kTan[] = {0.33333334f,    0.133332272f,   0.0539952878f, 0.0216146642f,
                                   0.00998475502f, 0.00114929612f, 0.00386446245f};
  const Vec<float> magic(12582912.0f); // 1.5 * 2^23: rounds and leaves the integer's bits
  const Vec<float> shifted = fma(x, Vec<float>(0.636619747f), magic);
  const Vec<float> n = shifted - magic;
  Vec<float> r = fma(n, Vec<float>(-1.57079637f), x);
  r = fma(n, Vec<float>(4.37113883e-8f), r);
  r = fma(n, Vec<float>(1.71512489e-15f), r);
  const Vec<float> z = r * r;
  const Vec<float> t = fma(r * z, poly(z, kTan), r);
  const Vec<int> odd = as_int(shifted) & Vec<int>(1);
  const Vec<float> result = select(Mask<float>{(odd != Vec<int>(0)).m}, Vec<float>(-1.0f) / t, t);
  return select(x == Vec<float>(0.0f), x, result); // keeps -0
}
template <class V> C10_ALWAYS_INLINE V tan(V x) { return vm::tan(x); }
C10_ALWAYS_INLINE Vec<float> tan(Vec<float> x) {
#if defined(__FMA__)
  const Vec<float> near = tangent_in_float(x);
  const Mask<float> far = abs(x) > Vec<float>(1e4f);
  if (C10_LIKELY(!vec::any(far))) return near;
  return select(far, vm::tan(x), near);
#else
  return vm::tan(x);
#endif
}

// e^a / 2 where e^a itself may overflow.
C10_ALWAYS_INLINE Vec<float> half_exp(Vec<float> a) {
  const Vec<float> root = vm::exp(a * Vec<float>(0.5f));
  return (root * Vec<float>(0.5f)) * root;
}
template <class V> C10_ALWAYS_INLINE V sinh(V x) { return vm::sinh(x); }
C10_ALWAYS_INLINE Vec<float> sinh(Vec<float> x) {
  const Vec<float> a = abs(x), one(1.0f);
  const Vec<float> e = vm::expm1(a);
  const Vec<float> small = (e + e / (e + one)) * Vec<float>(0.5f);
  const Mask<float> far = a > Vec<float>(22.0f);
  if (C10_LIKELY(!vec::any(far))) return copysign(small, x);
  return copysign(select(far, half_exp(a), small), x);
}
template <class V> C10_ALWAYS_INLINE V cosh(V x) { return vm::cosh(x); }
C10_ALWAYS_INLINE Vec<float> cosh(Vec<float> x) {
  const Vec<float> a = abs(x), half(0.5f);
  const Vec<float> e = vm::exp(a);
  const Vec<float> small = half * e + half / e;
  const Mask<float> far = a > Vec<float>(22.0f);
  if (C10_LIKELY(!vec::any(far))) return small;
  return select(far, half_exp(a), small);
}
template <class V> C10_ALWAYS_INLINE V atanh(V x) { return vm::atanh(x); }
C10_ALWAYS_INLINE Vec<float> atanh(Vec<float> x) {
  const Vec<float> a = abs(x), one(1.0f);
  return copysign(vm::log1p((a + a) / (one - a)) * Vec<float>(0.5f), x);
}

template <class V> C10_ALWAYS_INLINE V atan2(V y, V x) { return vm::atan2(y, x); }
// The fit of atan on [0, 1] has relative error 8e-9.
C10_ALWAYS_INLINE Vec<float> atan2(Vec<float> y, Vec<float> x) {
  static constexpr float kAtan[] = {-0.333333331f,   0.199999493f,  -0.142840038f, 0.110882616f,
                                    -0.0893182678f,  0.0703191425f, -0.048960514f, 0.0263050011f,
                                    -0.00914462976f, 0.00148869194f};
  const Vec<float> ay = abs(y), ax = abs(x), one(1.0f), zero(0.0f);
  const Mask<float> steep = ay > ax;
  const Vec<float> small = select(steep, ax, ay), large = select(steep, ay, ax);
  Vec<float> t = small / large;
  t = select(large == zero, zero, t);              // both zero: angle 0 or pi
  t = select(isinf(small) & isinf(large), one, t); // both infinite: the diagonal
  const Vec<float> z = t * t, p = fma(t * z, poly(z, kAtan), t);
  // pi/2 as a float and the rest of it.
  const Vec<float> right(1.57079637f), low(-4.37113883e-8f);
  Vec<float> r = select(steep, right - (p - low), p);
  r = select(signbit(x), (right + right) - (r - (low + low)), r);
  r = select(isnan(x) | isnan(y), x + y, r);
  return copysign(r, y);
}

template <class V> C10_ALWAYS_INLINE V nextafter(V x, V y) { return vm::nextafter(x, y); }
// Neighbouring numbers of one sign have neighbouring bits.
template <class T> C10_ALWAYS_INLINE Vec<T> nextafter(Vec<T> x, Vec<T> y) {
  using I = Vec<int_of<T>>;
  const Vec<T> zero(T(0)), smallest = as_float<T>(I(int_of<T>(1)));
  const auto away = (x < y).m ^ (x < zero).m; // all ones: the size grows, none: it shrinks
  const Vec<T> stepped = as_float<T>(I(as_int(x).v - (typename I::Raw)(away | 1)));
  Vec<T> r = select(x == zero, copysign(smallest, y), stepped);
  r = select(x == y, y, r);
  return select(isnan(x) | isnan(y), x + y, r);
}

// ---- complex numbers as registers of real and of imaginary parts
// --------------------------------- e^(y log x), through the logarithm of the larger part so that
// no square overflows. The products with a zero part of y are zero even where the logarithm is
// infinite.
C10_ALWAYS_INLINE complex<Vec<double>> polar_power(complex<Vec<double>> x, complex<Vec<double>> y) {
  const Vec<double> re = abs(x.real_), im = abs(x.imag_), zero(0.0);
  const Vec<double> large = select(re < im, im, re), small = select(re < im, re, im);
  const Vec<double> equal_or_zero = select(large == small, Vec<double>(1.0), small / large);
  const Vec<double> ratio = select(large == zero, zero, equal_or_zero);
  const Vec<double> length = vm::log(large) + vm::log1p(ratio * ratio) * Vec<double>(0.5);
  const Vec<double> angle = vm::atan2(x.imag_, x.real_);
  const auto product = [zero](Vec<double> factor, Vec<double> value) {
    return select(factor == zero, zero, factor * value);
  };
  const Vec<double> grow = product(y.real_, length) - product(y.imag_, angle);
  const Vec<double> turn = product(y.real_, angle) + product(y.imag_, length);
  const Vec<double> size = vm::exp(grow);
  return {size * vm::cos(turn), size * vm::sin(turn)};
}

template <class T> C10_ALWAYS_INLINE T pow(T x, T y) { return vm::pow(x, y); }
// x^0 is 1 and x^1 is x, exactly and for every x; 0 to a power with a positive real part is 0.
template <class T> C10_ALWAYS_INLINE complex<Vec<T>> pow(complex<Vec<T>> x, complex<Vec<T>> y) {
  complex<Vec<T>> r;
  if constexpr (sizeof(T) == sizeof(double)) {
    r = polar_power(x, y);
  } else {
    const auto re = vec::widen(x.real_), im = vec::widen(x.imag_);
    const auto yre = vec::widen(y.real_), yim = vec::widen(y.imag_);
    const auto lo = polar_power({re.lo, im.lo}, {yre.lo, yim.lo});
    const auto hi = polar_power({re.hi, im.hi}, {yre.hi, yim.hi});
    r = {vec::narrow({lo.real_, hi.real_}), vec::narrow({lo.imag_, hi.imag_})};
  }
  const Vec<T> zero(T(0)), one(T(1));
  const Mask<T> real = y.imag_ == zero;
  const Mask<T> vanishes = (x.real_ == zero) & (x.imag_ == zero) & (y.real_ > zero);
  const Mask<T> same = real & (y.real_ == one), unit = real & (y.real_ == zero);
  const auto choose = [&](Vec<T> value, Vec<T> itself, Vec<T> for_unit) {
    value = select(same, itself, select(vanishes, zero, value));
    return select(unit, for_unit, value);
  };
  return {choose(r.real_, x.real_, one), choose(r.imag_, x.imag_, zero)};
}

template <class T> C10_ALWAYS_INLINE T magnitude(complex<T> x) { return vm::magnitude(x); }
template <class T> C10_ALWAYS_INLINE Vec<T> magnitude(complex<Vec<T>> x) {
  return vm::hypot(x.real_, x.imag_);
}

template <class V> C10_ALWAYS_INLINE V divide(V a, V b) { return a / b; }
// The division of c10::complex, its branches as selections: by the quotient of the smaller by the
// larger part, which keeps squares in range; by zero part by part.
template <class T> C10_ALWAYS_INLINE complex<Vec<T>> divide(complex<Vec<T>> a, complex<Vec<T>> b) {
  const Mask<T> steep = abs(b.real_) < abs(b.imag_);
  const Vec<T> large = select(steep, b.imag_, b.real_), small = select(steep, b.real_, b.imag_);
  const Vec<T> ratio = small / large, scale = Vec<T>(T(1)) / fma(small, ratio, large);
  const Vec<T> p = select(steep, a.imag_, a.real_), q = select(steep, a.real_, a.imag_);
  const Vec<T> re = fma(q, ratio, p) * scale, im = fma(-p, ratio, q) * scale;
  const Mask<T> zero = large == Vec<T>(T(0));
  return {select(zero, a.real_ / abs(large), re),
          select(zero, a.imag_ / abs(large), select(steep, -im, im))};
}
template <class T> C10_ALWAYS_INLINE complex<Vec<T>> reciprocal(complex<Vec<T>> x) {
  return divide(complex<Vec<T>>(Vec<T>(T(1)), Vec<T>(T(0))), x);
}
template <class T> C10_ALWAYS_INLINE complex<T> reciprocal(complex<T> x) {
  return complex<T>(T(1)) / x;
}

} // namespace reg
} // namespace CRESSET_ISA
} // namespace at::vm
