// Bessel functions as double routines. The modified functions of the first kind are power series of
// positive terms up to 20 and asymptotic from there (both good to the last digits); the second kind
// is its integral over e^(-x cosh t), for which the trapezoidal rule converges exponentially.
#pragma once

#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

// e^-|x| I_order(x) for order 0 or 1.
CRESSET_HD inline double bessel_i_scaled(int order, double x) {
  const double a = vm::abs(x);
  double sum = 1, term = 1;
  if (a <= 20) {
    const double z = a * a / 4;
    for (int k = 1; k < 100 && term > kEps * sum / 4; ++k) {
      term *= z / (static_cast<double>(k) * (k + order));
      sum += term;
    }
    const double value = vm::exp(-a) * (order == 0 ? sum : sum * a / 2);
    return order == 1 && x < 0 ? -value : value;
  }
  const double mu = 4.0 * order * order;
  for (int k = 1; k < 30; ++k) {
    const double odd = 2 * k - 1;
    const double next = -term * (mu - odd * odd) / (8 * a * k);
    if (vm::abs(next) < kEps * sum / 4) {
      break;
    }
    term = next;
    sum += term;
  }
  const double value = vm::isinf(a) ? 0 : sum / vm::sqrt(2 * kPi * a);
  return order == 1 && x < 0 ? -value : value;
}
CRESSET_HD inline double bessel_i(int order, double x) {
  const double a = vm::abs(x);
  if (a > 700) { // e^a alone may overflow where the product does not
    const double root = vm::exp(a / 2);
    return vm::isinf(a) ? (order == 1 ? x : a) : bessel_i_scaled(order, x) * root * root;
  }
  return bessel_i_scaled(order, x) * vm::exp(a);
}

// e^x K_order(x) = integral over t >= 0 of e^(-x (cosh t - 1)) cosh(order t), for x above 1.
CRESSET_HD inline double bessel_k_integral(double order, double x) {
  const double narrow = 0.7 / vm::sqrt(x);
  const double h = narrow < 0.2 ? narrow : 0.2;
  double sum = 0.5;
  for (int i = 1; i < 1000; ++i) {
    const double t = i * h;
    const double s = vm::sinh(t / 2);
    const double exponent = 2 * x * s * s; // x (cosh t - 1)
    if (exponent > 45) {
      break;
    }
    sum += vm::exp(-exponent) * vm::cosh(order * t);
  }
  return sum * h;
}
// K_order(x) for 0 < x <= 1 by its series: logarithm times I, plus a sum with harmonic numbers.
CRESSET_HD inline double bessel_k_series(int order, double x) {
  const double z = x * x / 4;
  const double l = vm::log(x / 2) + c10::euler<double>;
  double power = 1, harmonic = 0, sum_i = 0, sum_h = 0;
  for (int k = 0; k < 30; ++k) {
    // order 0: z^k / k!^2 (H_k - l); order 1: z^k / (k! (k+1)!) (2 l - H_k - H_(k+1)) x / 4, plus
    // 1/x.
    const double weight = power / (order == 0 ? 1 : k + 1);
    sum_i += weight;
    sum_h += weight * (order == 0 ? harmonic : 2 * harmonic + 1.0 / (k + 1));
    if (weight < kEps * kEps) {
      break;
    }
    harmonic += 1.0 / (k + 1);
    power *= z / (static_cast<double>(k + 1) * (k + 1));
  }
  return order == 0 ? sum_h - l * sum_i : 1 / x + x / 4 * (2 * l * sum_i - sum_h);
}
CRESSET_HD inline double bessel_k(int order, double x, bool scaled) {
  if (!(x > 0)) {
    return x == 0 ? kInf : kNan;
  }
  if (x <= 1) {
    return bessel_k_series(order, x) * (scaled ? vm::exp(x) : 1);
  }
  if (vm::isinf(x)) {
    return 0;
  }
  return bessel_k_integral(order, x) * (scaled ? 1 : vm::exp(-x));
}

CRESSET_HD inline double spherical_bessel_j0(double x) {
  return vm::isinf(x) ? 0 : vm::abs(x) < 1e-4 ? 1 - x * x / 6 : vm::sin(x) / x;
}

// The Airy function. Positive arguments through K_1/3; up to 5 in size the power series of the two
// solutions; beyond, on the oscillating side, Taylor steps of y'' = x y from values of the series.
CRESSET_HD inline void airy_series(double x, double& value, double& slope) {
  const double c1 = 0.355028053887817239, c2 = 0.258819403792806798;
  double f = 1, df = 0, g = x, dg = 1, tf = 1, tg = x;
  for (int k = 1; k < 60; ++k) {
    const double cube = x * x * x;
    df += tf * x * x / (3 * k - 1);
    dg += tg * x * x / (3 * k);
    tf *= cube / ((3.0 * k - 1) * (3 * k));
    tg *= cube / ((3.0 * k) * (3 * k + 1));
    f += tf;
    g += tg;
    if (vm::abs(tf) + vm::abs(tg) < kEps * kEps) {
      break;
    }
  }
  value = c1 * f - c2 * g;
  slope = c1 * df - c2 * dg;
}
// One Taylor step of y'' = x y from x0 by h.
CRESSET_HD inline void airy_step(double x0, double h, double& value, double& slope) {
  double a0 = value, a1 = slope, a2 = x0 * value / 2;
  double y = a0 + h * (a1 + h * a2), dy = a1 + 2 * a2 * h, power = h * h;
  for (int k = 3; k < 40; ++k) {
    const double next = (x0 * a1 + a0) / (static_cast<double>(k) * (k - 1));
    a0 = a1;
    a1 = a2;
    a2 = next;
    dy += k * next * power;
    power *= h;
    y += next * power;
  }
  value = y;
  slope = dy;
}
CRESSET_HD inline double airy_ai(double x) {
  if (vm::isnan(x)) {
    return x;
  }
  if (x > 2) {
    const double zeta = 2.0 / 3 * x * vm::sqrt(x);
    return vm::isinf(x) ? 0
                        : vm::sqrt(x / 3) / kPi * bessel_k_integral(1.0 / 3, zeta) * vm::exp(-zeta);
  }
  if (x >= -3) {
    double value, slope;
    airy_series(x, value, slope);
    return value;
  }
  if (x < -100) { // amplitude and phase of the asymptotic expansion, three terms
    const double a = -x, zeta = 2.0 / 3 * a * vm::sqrt(a);
    if (vm::isinf(a)) {
      return 0;
    }
    const double z = 1 / (zeta * zeta);
    const double even = 1 - z * (0.0371334876543209876 - z * 0.0576491904126697274);
    const double odd = (0.0694444444444444444 - z * (0.0379930591278006403)) / zeta;
    const double angle = zeta - kPi / 4;
    return (vm::cos(angle) * even + vm::sin(angle) * odd) / (kSqrtPi * vm::sqrt(vm::sqrt(a)));
  }
  double at = -3, value, slope;
  airy_series(at, value, slope);
  while (at > x) {
    const double h = x - at < -0.25 ? -0.25 : x - at;
    airy_step(at, h, value, slope);
    at += h;
  }
  return value;
}

} // namespace CRESSET_ISA
} // namespace at::native::special
