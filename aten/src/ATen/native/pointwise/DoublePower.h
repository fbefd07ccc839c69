// x^y in double precision on registers: 2^(y log2 x) with the logarithm in two doubles, some 65
// bits, because the exponent multiplies its error by up to 1024. log m = 2 s (1 + z/3 + z^2/5 +
// ...) with s = (m - 1) / (m + 1) and z = s^2: s and the term z / 3 are carried in two doubles, the
// rest is small enough for one. Largest error measured 1.0 units in the last place.
#pragma once

#include <ATen/vec/RegisterMath.h>

namespace at::vm {
inline namespace CRESSET_ISA {
namespace reg {

#if defined(__FMA__)
// A number as a double and what it misses.
struct TwoDoubles {
  Vec<double> hi, lo;
};
// a + b for |a| >= |b|, or a = 0.
C10_ALWAYS_INLINE TwoDoubles exact_sum(Vec<double> a, Vec<double> b) {
  const Vec<double> hi = a + b;
  return {hi, (a - hi) + b};
}
C10_ALWAYS_INLINE TwoDoubles product(TwoDoubles a, TwoDoubles b) {
  const Vec<double> hi = a.hi * b.hi;
  return {hi, fma(a.hi, b.hi, -hi) + fma(a.hi, b.lo, a.lo * b.hi)};
}

// log2 of a positive finite number.
C10_ALWAYS_INLINE TwoDoubles log2_in_two(Vec<double> a) {
  static constexpr double kTail[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                     1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};
  using C = vm::detail::LogConstants<double>;
  using U = Vec<unsigned long>::Raw;
  using D = Vec<double>;
  const D magic(ExpConstants<double>::kMagic), one(1.0), two(2.0);
  // A subnormal number is lifted by 2^54 first.
  const Mask<double> tiny = a < D(2.2250738585072014e-308);
  a = select(tiny, a * D(18014398509481984.0), a);
  const U bits = (U)a.v + (C::kOne - C::kSqrtHalf);
  const D f =
      D((D::Raw)((bits & C::kMask) + C::kSqrtHalf)) - one; // in [sqrt(1/2) - 1, sqrt(2) - 1]
  const D biased = D((D::Raw)((U)magic.v + (bits >> 52))) - magic;
  const D exponent = biased - select(tiny, D(1077.0), D(1023.0));
  const TwoDoubles below = exact_sum(two, f);
  const D s = f / below.hi;
  const TwoDoubles ratio = {s, fma(-s, below.lo, fma(-s, below.hi, f)) / below.hi};
  const TwoDoubles z = product(ratio, ratio);
  const TwoDoubles third = product(z, {D(0.3333333333333333), D(1.850371707708594e-17)});
  TwoDoubles series = exact_sum(third.hi, z.hi * z.hi * poly(z.hi, kTail));
  series.lo = series.lo + third.lo;
  const TwoDoubles rest = product(ratio, series);
  TwoDoubles half_log = exact_sum(ratio.hi, rest.hi);
  half_log.lo = half_log.lo + (rest.lo + ratio.lo);
  // Twice log2(e).
  const TwoDoubles part = product(half_log, {D(2.8853900817779268), D(4.0710547481862066e-17)});
  TwoDoubles r = exact_sum(exponent, part.hi);
  r.lo = r.lo + part.lo;
  return r;
}

// a^y for a positive and finite, y finite.
C10_ALWAYS_INLINE Vec<double> power_of_positive(Vec<double> a, Vec<double> y) {
  using D = Vec<double>;
  const D magic(ExpConstants<double>::kMagic), limit(1100.0);
  const TwoDoubles l = log2_in_two(a);
  const D hi = y * l.hi, lo = fma(y, l.hi, -hi) + y * l.lo;
  const D inside = clamp_keeping_nan(hi, -1100.0, 1100.0);
  const D shifted = inside + magic, n = shifted - magic;
  const D r = select(abs(hi) < limit, (inside - n) + lo, D(0.0)) * D(c10::ln_2<double>);
  return scale(expm1_poly(r) + D(1.0), as_int(shifted) - as_int(magic));
}

// The sign and the special cases of the C library's pow.
C10_ALWAYS_INLINE Vec<double> pow(Vec<double> x, Vec<double> y) {
  using D = Vec<double>;
  const D one(1.0), zero(0.0), half(0.5), inf(c10::numeric_limits<double>::infinity());
  const D a = abs(x);
  const Mask<double> whole = vm::trunc(y) == y; // so is infinity, and even
  const Mask<double> odd = whole & (vm::trunc(y * half) != y * half);
  const Mask<double> far = abs(y) > D(1e300); // only the side of 1 that a lies on counts
  const D exponent = select(far, copysign(D(1e300), y), y);
  D r = power_of_positive(select((a == zero) | !(a < inf), one, a), exponent);
  r = select((a == zero) | (a == inf), select((a == zero) ^ (y < zero), zero, inf), r);
  r = select(a == one, one, r);
  r = select(signbit(x) & odd, -r, r);
  const Mask<double> undefined = (x < zero) & !whole & (a < inf);
  r = select(undefined, D(c10::numeric_limits<double>::quiet_NaN()), r);
  r = select(isnan(x) | isnan(y), x + y, r);
  return select((y == zero) | (x == one), one, r);
}
#endif

} // namespace reg
} // namespace CRESSET_ISA
} // namespace at::vm
