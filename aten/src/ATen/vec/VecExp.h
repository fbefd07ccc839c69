// vm for registers, the exponential family. All of it is one reduction, x = n ln 2 + r with
// |r| <= ln(2) / 2, and one polynomial for e^r; coefficients are Chebyshev fits computed in 60
// digits (relative error 2e-10 for float, 2e-18 for double). Largest errors measured, in
// units in the last place, float / double: exp 0.94 / 0.93, exp2 0.97 / 1.03, expm1 1.4 / 1.9,
// tanh 2.1 / 2.4, sinh and cosh 0.5 / 2.7, erf (float) 1.2.
#pragma once

#include <type_traits>

#include <ATen/vec/VecBasic.h>

namespace at::vm {
inline namespace CRESSET_ISA {

namespace detail {

// Adding kMagic rounds to the nearest integer and leaves it in the low bits of the sum.
template <class T> struct ExpConstants;
template <> struct ExpConstants<float> {
  static constexpr float kMagic = 12582912.0f; // 1.5 * 2^23
  static constexpr float kLn2Hi = 0.69287109375f, kLn2Lo = 2.7608681e-4f;
  static constexpr float kLowest = -104.0f, kHighest = 89.0f;
  static constexpr float kExpm1Lowest = -20.0f, kExpm1Tiny = 1e-8f, kTanhLimit = 10.0f;
  static constexpr float kExp2Lowest = -151.0f, kExp2Highest = 129.0f;
  static constexpr int kMantissa = 23, kBias = 127;
  // (e^r - 1 - r) / r^2
  static constexpr float kPoly[] = {0.500000001f,   0.166666667f, 0.0416664649f,
                                    0.00833331093f, 0.001393365f, 0.000198909908f};
};
template <> struct ExpConstants<double> {
  static constexpr double kMagic = 6755399441055744.0; // 1.5 * 2^52
  static constexpr double kLn2Hi = 0.6931471803691238, kLn2Lo = 1.9082149292705877e-10;
  static constexpr double kLowest = -746.0, kHighest = 710.0;
  static constexpr double kExpm1Lowest = -50.0, kExpm1Tiny = 1e-17, kTanhLimit = 22.0;
  static constexpr double kExp2Lowest = -1076.0, kExp2Highest = 1025.0;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kPoly[] = {0.5,
                                     0.1666666666666667,
                                     0.04166666666666667,
                                     0.008333333333326136,
                                     0.0013888888888883748,
                                     0.00019841269874820627,
                                     2.4801587325547743e-05,
                                     2.7557255400206422e-06,
                                     2.75572736431103e-07,
                                     2.5105217004720745e-08,
                                     2.0914686968086876e-09};
};

template <class T> C10_ALWAYS_INLINE Vec<T> clamp_keeping_nan(Vec<T> x, T lowest, T highest) {
#if defined(__AVX512F__) && !defined(__clang__)
  // Of a NaN and a number these give the second operand.
  if constexpr (std::is_same_v<T, float>) {
    x = __builtin_ia32_minps512_mask(Vec<T>(highest).v, x.v, x.v, -1, 4);
    return Vec<T>(__builtin_ia32_maxps512_mask(Vec<T>(lowest).v, x.v, x.v, -1, 4));
  }
#endif
  x = select(x > Vec<T>(highest), Vec<T>(highest), x);
  return select(x < Vec<T>(lowest), Vec<T>(lowest), x);
}

// 2^n for n in the range of normal numbers.
template <class T> C10_ALWAYS_INLINE Vec<T> pow2(Vec<int_of<T>> n) {
  using C = ExpConstants<T>;
  return as_float<T>(Vec<int_of<T>>((n.v + C::kBias) << C::kMantissa));
}

// p * 2^n in two steps, so that overflow and gradual underflow come out of the last multiplication.
template <class T> C10_ALWAYS_INLINE Vec<T> scale(Vec<T> p, Vec<int_of<T>> n) {
  using C = ExpConstants<T>;
#if defined(__AVX512F__) && !defined(__clang__)
  // One instruction that rounds once, as the last multiplication below.
  if constexpr (std::is_same_v<T, float>) {
    const auto exponent = __builtin_convertvector(n.v, typename Vec<T>::Raw);
    return Vec<T>(__builtin_ia32_scalefps512_mask(p.v, exponent, p.v, -1, 4));
  }
#endif
  // half = n / 2 rounded down; the bias keeps the shifted value positive, because machines before
  // AVX-512 have no arithmetic shift of 64 bits.
  typedef typename Vec<int_of<T>>::Raw Raw;
  using Unsigned = typename Vec<std::make_unsigned_t<int_of<T>>>::Raw;
  const Raw half = (Raw)((Unsigned)(n.v + 4 * C::kBias) >> 1) - 2 * C::kBias;
  return p * pow2<T>(half) * pow2<T>(n.v - half);
}

template <class T> struct Reduced {
  Vec<T> r;
  Vec<int_of<T>> n;
};
template <class T> C10_ALWAYS_INLINE Reduced<T> reduce_exp(Vec<T> x) {
  using C = ExpConstants<T>;
  const Vec<T> magic(C::kMagic);
  const Vec<T> shifted = fma(x, Vec<T>(c10::log2_e<T>), magic);
  const Vec<T> n = shifted - magic;
  const Vec<T> r = fma(n, Vec<T>(-C::kLn2Lo), fma(n, Vec<T>(-C::kLn2Hi), x));
  return {r, as_int(shifted) - as_int(magic)};
}
// e^r - 1 for a reduced r.
template <class T> C10_ALWAYS_INLINE Vec<T> expm1_poly(Vec<T> r) {
  return fma(r * r, poly(r, ExpConstants<T>::kPoly), r);
}

} // namespace detail

template <class T> C10_ALWAYS_INLINE Vec<T> exp(Vec<T> x) {
  using C = detail::ExpConstants<T>;
  const auto reduced = detail::reduce_exp(detail::clamp_keeping_nan(x, C::kLowest, C::kHighest));
  return detail::scale(detail::expm1_poly(reduced.r) + Vec<T>(T(1)), reduced.n);
}

template <class T> C10_ALWAYS_INLINE Vec<T> exp2(Vec<T> x) {
  using C = detail::ExpConstants<T>;
  x = detail::clamp_keeping_nan(x, C::kExp2Lowest, C::kExp2Highest);
  const Vec<T> magic(C::kMagic);
  const Vec<T> shifted = x + magic;
  const Vec<T> r = (x - (shifted - magic)) * Vec<T>(c10::ln_2<T>);
  return detail::scale(detail::expm1_poly(r) + Vec<T>(T(1)), as_int(shifted) - as_int(magic));
}

// 2^n (e^r - 1) + (2^n - 1), computed at half the size so that 2^n cannot overflow.
template <class T> C10_ALWAYS_INLINE Vec<T> expm1(Vec<T> x) {
  using C = detail::ExpConstants<T>;
  const auto reduced =
      detail::reduce_exp(detail::clamp_keeping_nan(x, C::kExpm1Lowest, C::kHighest));
  const Vec<T> half_scale = detail::pow2<T>(reduced.n.v - 1);
  const Vec<T> half = fma(half_scale, detail::expm1_poly(reduced.r), half_scale - Vec<T>(T(0.5)));
  return select(abs(x) < Vec<T>(C::kExpm1Tiny), x, half + half);
}

template <class T> C10_ALWAYS_INLINE Vec<T> tanh(Vec<T> x) {
  using C = detail::ExpConstants<T>;
  const Vec<T> a = abs(x);
  const Vec<T> limited = select(a > Vec<T>(C::kTanhLimit), Vec<T>(C::kTanhLimit), a);
  const Vec<T> e = expm1(limited + limited);
  return copysign(e / (e + Vec<T>(T(2))), x);
}

namespace detail {
// e^a / 2 where e^a itself may overflow.
C10_ALWAYS_INLINE Vec<double> half_exp(Vec<double> a) {
  const Vec<double> root = vm::exp(a * Vec<double>(0.5));
  return (root * Vec<double>(0.5)) * root;
}
} // namespace detail

C10_ALWAYS_INLINE Vec<double> sinh(Vec<double> x) {
  const Vec<double> a = abs(x), one(1.0);
  const Vec<double> e = expm1(a);
  const Vec<double> small = (e + e / (e + one)) * Vec<double>(0.5);
  return copysign(select(a > Vec<double>(22.0), detail::half_exp(a), small), x);
}
C10_ALWAYS_INLINE Vec<double> cosh(Vec<double> x) {
  const Vec<double> a = abs(x), half(0.5);
  const Vec<double> e = vm::exp(a);
  return select(a > Vec<double>(22.0), detail::half_exp(a), half * e + half / e);
}
C10_ALWAYS_INLINE Vec<float> sinh(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::sinh(a); });
}
C10_ALWAYS_INLINE Vec<float> cosh(Vec<float> x) {
  return in_double(x, [](Vec<double> a) { return vm::cosh(a); });
}

namespace detail {
// e^x for x in [-700, 700] (double) or [-80, 80] (float): no clamping, one scaling.
template <class T> C10_ALWAYS_INLINE Vec<T> exp_in_range(Vec<T> x) {
  const auto reduced = reduce_exp(x);
  return (expm1_poly(reduced.r) + Vec<T>(T(1))) * pow2<T>(reduced.n);
}
} // namespace detail

// float: x + x P(x^2) below 1, 1 - e^Q(|x|) above, where Q fits log erfc on [1, 4]; from 4 on erf
// is 1.
C10_ALWAYS_INLINE Vec<float> erf(Vec<float> x) {
  static constexpr float kSmall[] = {0.128379167f,   -0.376126267f,    0.112835947f,  -0.026854212f,
                                     0.00518908742f, -0.000801686429f, 7.87587506e-5f};
  static constexpr float kLogErfc[] = {0.00032013805f,  -1.13023343f,    -0.631826052f,
                                       -0.110080083f,   0.026421136f,    -0.00475959629f,
                                       0.000596805626f, -4.60580427e-5f, 1.63715141e-6f};
  const Vec<float> a = abs(x), one(1.0f), four(4.0f);
  const Vec<float> limited = select(a > four, four, a);
  const Vec<float> large = one - detail::exp_in_range(detail::poly(limited, kLogErfc));
  return select(a < one, fma(x, detail::poly(x * x, kSmall), x), copysign(large, x));
}
// double: the same below 1; above, erfc = e^(-x^2) G(1 / (x + 2)) with G fitted on [1, 6].
C10_ALWAYS_INLINE Vec<double> erf(Vec<double> x) {
  static constexpr double kSmall[] = {
      0.1283791670955126,      -0.3761263890318375,     0.11283791670954879,
      -0.026866170645076792,   0.0052239776248180145,   -0.000854832698083379,
      0.0001205533111164271,   -1.4925595266831182e-05, 1.6461000484121368e-06,
      -1.6350312701054695e-07, 1.4659775274047436e-08,  -1.1372848856791674e-09,
      5.957176147748911e-11};
  static constexpr double kErfcx[] = {
      1.273194538411999e-08, 0.5641886748920729, 1.1284077674102482,  1.9741595366538842,
      2.8258324602066986,    2.6697328216797693, -0.7228605651893688, 0.4045558368126824,
      -86.45933445351965,    471.55570766079865, -2180.9601729464644, 7781.0890875471505,
      -18775.426689495016,   29840.22786377935,  -30368.2623604029,   18137.16016576931,
      -4875.8923220392635};
  const Vec<double> a = abs(x), one(1.0), six(6.0);
  const Vec<double> limited = select(a > six, six, a);
  const Vec<double> tail = detail::exp_in_range(-limited * limited) *
                           detail::poly(one / (limited + Vec<double>(2.0)), kErfcx);
  const Vec<double> small = fma(x, detail::poly(x * x, kSmall), x);
  return select(a < one, small, copysign(one - tail, x));
}

} // namespace CRESSET_ISA
} // namespace at::vm
