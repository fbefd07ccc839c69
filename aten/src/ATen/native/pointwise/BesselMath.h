// The Airy function as a double routine, and the integral over e^(-x cosh t) that gives it on the
// decaying side, for which the trapezoidal rule converges exponentially.
#pragma once

#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

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
  double center = -3, value, slope;
  airy_series(center, value, slope);
  while (center > x) {
    const double h = x - center < -0.25 ? -0.25 : x - center;
    airy_step(center, h, value, slope);
    center += h;
  }
  return value;
}

} // namespace CRESSET_ISA
} // namespace at::native::special
