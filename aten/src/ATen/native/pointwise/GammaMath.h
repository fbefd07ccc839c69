// log |gamma| and its derivative on registers of doubles. lgamma is shifted to [1.5, 2.5], where it
// is (y - 2) P(y), by one product whose logarithm is taken once; from 8.5 on Stirling's series.
// digamma is shifted to 10 and more by one fraction that collects the reciprocals, then its
// asymptotic series. Arguments below zero are reflected, in a branch that few programs take.
// Devices have their own lgamma and the scalar digamma of SpecialMath.h.
#pragma once

#include <ATen/native/pointwise/SpecialMath.h>

#if defined(CRESSET_DEVICE)
namespace at::native::special {
inline namespace CRESSET_ISA {
template <class V> CRESSET_FN V lgamma(V x) { return vm::lgamma(x); }
} // namespace CRESSET_ISA
} // namespace at::native::special
#else
namespace at::native::special {
inline namespace CRESSET_ISA {

using Wide = vec::Vec<double>;

// lgamma(y) / (y - 2) in 2 y - 4; relative error 2e-17.
inline constexpr double kLgamma[] = {
    0.42278433509846713,     0.16123351671205663,     -0.016838075263299526,
    0.0025726010534725475,   -0.0004615969392919999,  9.032844784482085e-05,
    -1.8636779872543994e-05, 3.981793089152702e-06,   -8.716982578328323e-07,
    1.9425326866834958e-07,  -4.3873352909331736e-08, 1.0012495486246804e-08,
    -2.3043738035184404e-09, 5.352422368894483e-10,   -1.247500494813837e-10,
    2.807778288259308e-11,   -6.599791480347415e-12,  2.126623574915764e-12,
    -5.043009058425092e-13};
// The series after (x - 1/2) log x - x + log(2 pi) / 2, over x, in 1 / x^2.
inline constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                       1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400};

C10_ALWAYS_INLINE Wide lgamma_positive(Wide x) {
  const Wide one(1.0), two(2.0), low(1.5), high(2.5);
  Wide y = x, product = one;
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k) {
    const auto up = y < low;
    product = vm::select(up, product * y, product);
    y = vm::select(up, y + one, y);
  }
  const auto raised = x < low;
#pragma GCC unroll 6
  for (int k = 0; k < 6; ++k) {
    const auto down = y >= high;
    y = vm::select(down, y - one, y);
    product = vm::select(down, product * y, product);
  }
  const auto far = x >= Wide(8.5);
  const Wide l = vm::log(vm::select(far, x, product));
  const Wide near = (y - two) * polynomial(y + y - Wide(4.0), kLgamma);
  const Wide shifted = near + vm::select(raised, -l, l);
  const Wide inverse = one / x;
  const Wide series = polynomial(inverse * inverse, kStirling) * inverse;
  const Wide stirling = vm::fma(x - Wide(0.5), l, -x) + (Wide(0.9189385332046727418) + series);
  return vm::select(far, stirling, shifted);
}

// sin(pi x) by the distance to the nearest integer, so that it is 0 at integers.
C10_ALWAYS_INLINE Wide sine_of_pi(Wide x) { return vm::sin((x - vm::round_even(x)) * Wide(kPi)); }

C10_ALWAYS_INLINE Wide lgamma(Wide x) {
  const Wide zero(0.0);
  const auto negative = x <= zero;
  Wide r = lgamma_positive(vm::select(negative, Wide(1.0) - x, x));
  const auto pole = negative & (vm::trunc(x) == x);
  if (C10_UNLIKELY(vec::any(negative & !pole))) {
    // gamma(x) gamma(1 - x) = pi / sin(pi x)
    r = vm::select(negative, vm::log(Wide(kPi) / vm::abs(sine_of_pi(x))) - r, r);
  }
  r = vm::select(pole, Wide(kInf), r);
  return vm::select(vm::isinf(x), Wide(kInf), r);
}

C10_ALWAYS_INLINE Wide digamma_positive(Wide x) {
  const Wide one(1.0), limit(10.0);
  Wide numerator(0.0), denominator(1.0), y = x;
#pragma GCC unroll 10
  for (int k = 0; k < 10; ++k) {
    const auto up = y < limit;
    numerator = vm::select(up, vm::fma(numerator, y, denominator), numerator);
    denominator = vm::select(up, denominator * y, denominator);
    y = vm::select(up, y + one, y);
  }
  const Wide inverse = one / y, z = inverse * inverse;
  const Wide tail = vm::fma(z, polynomial(z, kDigammaTail), inverse * Wide(0.5));
  return (vm::log(y) - tail) - numerator / denominator;
}

C10_ALWAYS_INLINE Wide digamma(Wide x) {
  const Wide zero(0.0);
  const auto negative = x <= zero;
  Wide r = digamma_positive(vm::select(negative, Wide(1.0) - x, x));
  if (C10_UNLIKELY(vec::any(negative))) {
    const Wide angle = (x - vm::round_even(x)) * Wide(kPi);
    const Wide reflected = r - Wide(kPi) / vm::tan(angle);
    const auto pole = (vm::trunc(x) == x) | vm::isinf(x);
    r = vm::select(negative, vm::select(pole, Wide(kNan), reflected), r);
    r = vm::select(x == zero, vm::copysign(Wide(kInf), -x), r);
  }
  return vm::select(x == Wide(kInf), x, r);
}

} // namespace CRESSET_ISA
} // namespace at::native::special
#endif
