// The special functions that have neither a vector form nor a C library function, as plain double
// routines; float and the half types compute in double and round once. Each is written from its
// series, recurrence or defining equation, with the choice of method in a comment.
#pragma once

#include <ATen/vec/RegisterMath.h>

// Tables that are read through a pointer; the device needs its own copy.
#if defined(CRESSET_DEVICE)
#define CRESSET_TABLE __device__ constexpr
#else
#define CRESSET_TABLE inline constexpr
#endif

namespace at::native::special {
inline namespace CRESSET_ISA {

inline constexpr double kInf = __builtin_huge_val();
inline constexpr double kNan = __builtin_nan("");
inline constexpr double kEps = 2.220446049250313080847e-16;
inline constexpr double kSqrtPi = 1.77245385090551602730;
inline constexpr double kPi = c10::pi<double>;

// B(2k) / (2k)!, k = 1.. : the weights of the Euler-Maclaurin formula.
CRESSET_TABLE double kBernoulliOverFactorial[] = {
    8.3333333333333333e-2,   -1.3888888888888889e-3,  3.3068783068783069e-5,
    -8.2671957671957672e-7,  2.0876756987868099e-8,   -5.2841901386874932e-10,
    1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
    -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};
// B(2k) / (2k), k = 1.. : the tail of digamma's asymptotic series.
CRESSET_TABLE double kDigammaTail[] = {
    8.3333333333333333e-2, -8.3333333333333333e-3, 3.9682539682539683e-3, -4.1666666666666667e-3,
    7.5757575757575758e-3, -2.1092796092796093e-2, 8.3333333333333333e-2, -4.4325980392156863e-1};
// B(2k), k = 1.. : trigamma's.
CRESSET_TABLE double kBernoulli[] = {
    1.6666666666666667e-1, -3.3333333333333333e-2, 2.3809523809523810e-2, -3.3333333333333333e-2,
    7.5757575757575758e-2, -2.5311355311355311e-1, 1.1666666666666667,    -7.0921568627450980};

CRESSET_HD inline double horner(double x, const double* c, int count) {
  double r = c[count - 1];
  for (int i = count - 2; i >= 0; --i) {
    r = r * x + c[i];
  }
  return r;
}

// c[0] + c[1] x + c[2] x^2 + ..., of a scalar or a register.
template <int kFirst = 0, class V, class T, int kCount>
CRESSET_FN V polynomial(V x, const T (&c)[kCount]) {
  if constexpr (kFirst == kCount - 1) {
    return V(c[kFirst]);
  } else {
    return vm::fma(polynomial<kFirst + 1>(x, c), x, V(c[kFirst]));
  }
}

// Recurrence up to 10, then log x - 1/(2x) - sum B(2k) / (2k x^2k); reflection below 0.
CRESSET_HD inline double digamma(double x) {
  if (x == 0) {
    return vm::copysign(kInf, -x);
  }
  double reflected = 0;
  if (x < 0) {
    if (x == vm::trunc(x) || vm::isinf(x)) {
      return kNan;
    }
    reflected = -kPi / vm::tan(kPi * (x - vm::trunc(x)));
    x = 1 - x;
  }
  double shift = 0;
  for (; x < 10; x += 1) {
    shift -= 1 / x;
  }
  const double z = 1 / (x * x);
  const double tail = vm::isinf(x) ? 0 : z * horner(z, kDigammaTail, 8);
  return reflected + shift + (vm::log(x) - 0.5 / x - tail);
}

// Recurrence up to 10, then 1/x + 1/(2x^2) + sum B(2k) / x^(2k+1); reflection below 1/2.
CRESSET_HD inline double trigamma(double x) {
  double sign = 1, result = 0;
  if (x < 0.5) {
    sign = -1;
    const double s = vm::sin(kPi * (x - 2 * vm::floor(x / 2)));
    result = -(kPi * kPi) / (s * s);
    x = 1 - x;
  }
  for (; x < 10; x += 1) {
    result += 1 / (x * x);
  }
  const double z = 1 / (x * x);
  result += (1 + 0.5 / x + z * horner(z, kBernoulli, 8)) / x;
  return sign * result;
}

// The Hurwitz zeta function, sum (q + k)^-x, by the Euler-Maclaurin formula from q + k > 9.
CRESSET_HD inline double zeta(double x, double q) {
  if (x == 1) {
    return kInf;
  }
  if (!(x > 1)) {
    return kNan;
  }
  if (q <= 0) {
    if (q == vm::floor(q)) {
      return kInf;
    }
    if (x != vm::floor(x)) {
      return kNan; // a negative number to a power that is no integer
    }
  }
  double sum = vm::pow(q, -x), a = q, term = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    a += 1;
    term = vm::pow(a, -x);
    sum += term;
    if (vm::abs(term) <= kEps * vm::abs(sum) / 2) {
      return sum;
    }
  }
  sum += term * a / (x - 1) - 0.5 * term;
  double factor = x;
  for (int k = 0; k < 12; ++k) {
    term /= a;
    const double t = factor * term * kBernoulliOverFactorial[k];
    sum += t;
    if (vm::abs(t) < kEps * vm::abs(sum) / 2) {
      break;
    }
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2);
    term /= a;
  }
  return sum;
}

// (-1)^(n+1) n! zeta(n + 1, x) beyond the first two.
CRESSET_HD inline double polygamma(double order, double x) {
  if (order == 0) {
    return digamma(x);
  }
  if (order == 1) {
    return trigamma(x);
  }
  const double sign = vm::fmod(order, 2.0) == 0 ? -1 : 1;
  return sign * vm::tgamma(order + 1) * zeta(order + 1, x);
}

// e^(x^2) erfc(x). From 20 on the asymptotic series; below, the product with the rounding error of
// x^2 carried along, because the exponential would magnify it.
CRESSET_HD inline double erfcx(double x) {
  if (x < -26.7) {
    return kInf;
  }
  if (x < 20) {
    const double square = x * x;
    const double lost = vm::fma(x, x, -square);
    const double e = vm::exp(square);
    return vm::erfc(x) * (e + e * lost);
  }
  const double z = 0.5 / (x * x);
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) {
    term *= -(2 * k - 1) * z;
    sum += term;
  }
  return sum / (x * kSqrtPi);
}

#if !defined(CRESSET_DEVICE)
C10_ALWAYS_INLINE vec::Vec<double> erfcx(vec::Vec<double> x) { return vm::reg::erfcx(x); }
#endif

// x^a e^-x / Gamma(a + 1). For large a through Stirling's series and the deviation of x from a,
// since the three factors overflow and their logarithms cancel.
CRESSET_HD inline double gamma_prefactor(double a, double x) {
  if (a < 20) {
    return vm::exp(a * vm::log(x) - x - vm::lgamma(a + 1));
  }
  const double mu = (x - a) / a;
  const double z = 1 / (a * a);
  const double stirling =
      (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z / 1188)))) / a;
  return vm::exp(a * (vm::log1p(mu) - mu) - stirling) / vm::sqrt(2 * kPi * a);
}
// The regularised lower function by its series, for x <= a + 1.
CRESSET_HD inline double igamma_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 20000 && term > kEps * sum / 4; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_prefactor(a, x);
}
// The regularised upper function by its continued fraction (Lentz's evaluation), for x > a + 1.
CRESSET_HD inline double igammac_fraction(double a, double x) {
  double b = x + 1 - a;
  double c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 20000; ++k) {
    const double an = -k * (k - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    const double delta = c * d;
    h *= delta;
    if (vm::abs(delta - 1) < kEps) {
      break;
    }
  }
  return h * a * gamma_prefactor(a, x);
}
// P(a, x) where `upper` is false, Q(a, x) = 1 - P where it is true.
CRESSET_HD inline double regularized_gamma(double a, double x, bool upper) {
  if (vm::isnan(a) || vm::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0) ||
      (vm::isinf(a) && vm::isinf(x))) {
    return kNan;
  }
  if (x == 0 || vm::isinf(a)) {
    return upper ? 1 : 0;
  }
  if (a == 0 || vm::isinf(x)) {
    return upper ? 0 : 1;
  }
  if (x > a + 1) {
    const double q = igammac_fraction(a, x);
    return upper ? q : 1 - q;
  }
  const double p = igamma_series(a, x);
  return upper ? 1 - p : p;
}

} // namespace CRESSET_ISA
} // namespace at::native::special
