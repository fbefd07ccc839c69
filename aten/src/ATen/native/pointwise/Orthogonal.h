// Orthogonal polynomials p_n(x) by their three-term recurrences. n arrives as a number of the
// loop's type and is truncated; a negative degree gives 0. Inside [-1, 1] the Chebyshev families
// have a closed form, which keeps large degrees cheap and exact; elsewhere a recurrence stops as
// soon as the value has overflowed.
#pragma once

#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

// p_(k+1) = (slope(k) x + shift(k)) p_k - back(k) p_(k-1), from p_0 = 1 and p_1 = first.
template <class Step> CRESSET_HD inline double recur(double degree, double first, Step step) {
  constexpr double kLongest =
      1e7; // a longer recurrence would look like a hang, and has no digits left
  if (!(degree >= 1)) {
    return degree > -1 ? 1 : vm::isnan(degree) ? degree : 0;
  }
  if (degree > kLongest) {
    return kNan;
  }
  const long n = static_cast<long>(degree);
  double before = 1, now = first;
  for (long k = 1; k < n && vm::isfinite(now); ++k) {
    const double next = step(k, now, before);
    before = now;
    now = next;
  }
  return now;
}
CRESSET_HD inline double chebyshev_recur(double x, double degree, double first) {
  return recur(degree, first, [x](long, double p, double q) { return 2 * x * p - q; });
}
// Near the ends the angle itself loses digits, which only pays for degrees too long to count to.
CRESSET_HD inline bool use_angle(double x, double degree) {
  return degree > 8 && (vm::abs(x) < 0.999 || (degree > 1000 && vm::abs(x) < 1));
}

CRESSET_HD inline double chebyshev_t(double x, double n) {
  n = vm::trunc(n);
  return use_angle(x, n) ? vm::cos(n * vm::acos(x)) : chebyshev_recur(x, n, x);
}
CRESSET_HD inline double chebyshev_u(double x, double n) {
  n = vm::trunc(n);
  if (use_angle(x, n)) {
    const double angle = vm::acos(x);
    return vm::sin((n + 1) * angle) / vm::sin(angle);
  }
  return chebyshev_recur(x, n, 2 * x);
}
CRESSET_HD inline double chebyshev_v(double x, double n) {
  n = vm::trunc(n);
  if (use_angle(x, n)) {
    const double angle = vm::acos(x);
    return vm::cos((n + 0.5) * angle) / vm::cos(angle / 2);
  }
  return chebyshev_recur(x, n, 2 * x - 1);
}
CRESSET_HD inline double chebyshev_w(double x, double n) {
  n = vm::trunc(n);
  if (use_angle(x, n)) {
    const double angle = vm::acos(x);
    return vm::sin((n + 0.5) * angle) / vm::sin(angle / 2);
  }
  return chebyshev_recur(x, n, 2 * x + 1);
}
CRESSET_HD inline double hermite_h(double x, double n) {
  return recur(vm::trunc(n), 2 * x,
               [x](long k, double p, double q) { return 2 * x * p - 2 * k * q; });
}
CRESSET_HD inline double hermite_he(double x, double n) {
  return recur(vm::trunc(n), x, [x](long k, double p, double q) { return x * p - k * q; });
}
CRESSET_HD inline double laguerre_l(double x, double n) {
  return recur(vm::trunc(n), 1 - x,
               [x](long k, double p, double q) { return ((2 * k + 1 - x) * p - k * q) / (k + 1); });
}
CRESSET_HD inline double legendre_p(double x, double n) {
  return recur(vm::trunc(n), x,
               [x](long k, double p, double q) { return ((2 * k + 1) * x * p - k * q) / (k + 1); });
}

} // namespace CRESSET_ISA
} // namespace at::native::special

namespace at::native::fn {
inline namespace CRESSET_ISA {

namespace detail {
// A functor over one of the routines above; kShifted evaluates at 2x - 1.
template <double (*kFunction)(double, double), bool kShifted = false> struct Polynomial {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x, T n) {
    const double argument = kShifted ? 2 * static_cast<double>(x) - 1 : static_cast<double>(x);
    return static_cast<T>(kFunction(argument, n));
  }
};
} // namespace detail

struct ChebyshevT : detail::Polynomial<special::chebyshev_t> {};
struct ChebyshevU : detail::Polynomial<special::chebyshev_u> {};
struct ChebyshevV : detail::Polynomial<special::chebyshev_v> {};
struct ChebyshevW : detail::Polynomial<special::chebyshev_w> {};
struct ShiftedChebyshevT : detail::Polynomial<special::chebyshev_t, true> {};
struct ShiftedChebyshevU : detail::Polynomial<special::chebyshev_u, true> {};
struct ShiftedChebyshevV : detail::Polynomial<special::chebyshev_v, true> {};
struct ShiftedChebyshevW : detail::Polynomial<special::chebyshev_w, true> {};
struct HermiteH : detail::Polynomial<special::hermite_h> {};
struct HermiteHe : detail::Polynomial<special::hermite_he> {};
struct LaguerreL : detail::Polynomial<special::laguerre_l> {};
struct LegendreP : detail::Polynomial<special::legendre_p> {};

} // namespace CRESSET_ISA
} // namespace at::native::fn
