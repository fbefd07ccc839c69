// How a gamma or beta sample moves when a parameter moves and its quantile stays: the derivative
// that lets gradients flow through sampling.
//
// Note [Pathwise derivatives]
// For a distribution function F(x; a) with density f, F(x(a); a) = const gives
// dx/da = -(dF/da) / f. Both F here are f times a function that a series or continued fraction with
// positive terms gives exactly, F = f * h, so that (dF/da) / f = (d log f / da) * h + dh/da and no
// density, which under- and overflows, is ever computed. dh/da comes from differentiating the
// recurrence term by term.
//
// Read by host and device compilers.
#pragma once

#if !defined(CRESSET_DEVICE)
#include <cmath>
#endif

#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::random {

#if !defined(CRESSET_DEVICE)
// What device code has without a namespace.
using std::fabs;
using std::log;
using std::sqrt;
#endif

// A value and its derivative with respect to the parameter.
struct Dual {
  double value;
  double slope;
};

// The lower tail of gamma over its density: sum of x^(k+1) / (a (a+1) ... (a+k)). With
// P = f * sum, (dP/da) / f is the sum of the terms times log(x) - digamma(a + k + 1).
CRESSET_HD inline double gamma_slope_below(double a, double x, double small) {
  const double log_x = log(x);
  double psi = special::digamma(a + 1);
  double term = x / a, sum = 0;
  for (int k = 1; k < 100000; ++k) {
    const double part = term * (log_x - psi);
    sum += part;
    psi += 1 / (a + k);
    term *= x / (a + k);
    if (term * fabs(log_x - psi) <= small * fabs(sum) && a + k > x) break;
  }
  return -sum;
}

// The upper tail over the density as a continued fraction, by Lentz's method on duals.
CRESSET_HD inline double gamma_slope_above(double a, double x, double small) {
  Dual b{x + 1 - a, -1};
  Dual c{1e300, 0};
  Dual d{1 / b.value, -b.slope / (b.value * b.value)};
  Dual h = d;
  for (int i = 1; i < 10000; ++i) {
    const Dual an{-i * (i - a), static_cast<double>(i)};
    b.value += 2;
    const Dual below{an.value * d.value + b.value,
                     an.slope * d.value + an.value * d.slope + b.slope};
    d = {1 / below.value, -below.slope / (below.value * below.value)};
    const double inverse_c = 1 / c.value;
    c = {b.value + an.value * inverse_c,
         b.slope + an.slope * inverse_c - an.value * c.slope * inverse_c * inverse_c};
    const Dual step{c.value * d.value, c.slope * d.value + c.value * d.slope};
    h = {h.value * step.value, h.slope * step.value + h.value * step.slope};
    if (fabs(step.value - 1) < 10 * small && fabs(step.slope) < 10 * small) break;
  }
  // h lacks the factor x of Q = f * x * h, and d log f / da = log(x) - digamma(a).
  return x * ((log(x) - special::digamma(a)) * h.value + h.slope);
}

// For large a the quantile in powers of a^(-1/2): x = a + z a^(1/2) + (z^2-1)/3 + (z^3-7z)/36
// a^(-1/2) - (3z^4+7z^2-16)/810 / a, with z the normal quantile of the sample.
CRESSET_HD inline double gamma_slope_large(double a, double x) {
  const double root = sqrt(a);
  double z = (x - a) / root;
  for (int i = 0; i < 8; ++i) {
    const double z2 = z * z;
    const double value = a + z * root + (z2 - 1) / 3 + (z2 - 7) * z / (36 * root) -
                         ((3 * z2 + 7) * z2 - 16) / (810 * a);
    const double slope =
        root + 2 * z / 3 + (3 * z2 - 7) / (36 * root) - (12 * z2 + 14) * z / (810 * a);
    z -= (value - x) / slope;
  }
  const double z2 = z * z;
  return 1 + z / (2 * root) - (z2 - 7) * z / (72 * a * root) +
         ((3 * z2 + 7) * z2 - 16) / (810 * a * a);
}

// When a sum of the functions here may stop, for samples of type T: a term this small beside it.
template <class T> CRESSET_HD constexpr double small_term() {
  return sizeof(T) == 8 ? 1e-17 : 1e-10;
}

// dx/da of a gamma sample x of shape a and scale 1.
CRESSET_HD inline double gamma_slope(double a, double x, double small) {
  if (!(a > 0) || !(x >= 0)) return special::kNan;
  if (x == 0) return 0;
  if (x == special::kInf) return x;
  if (a > 3000) return gamma_slope_large(a, x);
  return x > a + 1 && x > 8 ? gamma_slope_above(a, x, small) : gamma_slope_below(a, x, small);
}

// For large parameters a beta sample is its mean plus z standard deviations, z staying.
CRESSET_HD inline double beta_slope_large(double x, double a, double b) {
  const double total = a + b;
  const double mean = a / total;
  const double spread = 0.5 * (1 / a - 2 / total - 1 / (total + 1));
  return (b / (total * total) + (x - mean) * spread) / (1 - x);
}

// dx/da of a beta sample x with parameters a and b, divided by 1 - x.
CRESSET_HD inline double beta_slope(double x, double a, double b, double small) {
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) {
    return special::kNan;
  }
  if (x == 0 || x == 1) return 0;
  // The sum below takes some square roots of the smaller parameter of terms.
  if (a > 1e7 && b > 1e7) return beta_slope_large(x, a, b);
  const double total = a + b;
  const double log_slope = log(x) + special::digamma(total) - special::digamma(a);
  const bool lower = x < (a + 1) / (total + 2);
  const double y = lower ? x : 1 - x;
  const double first = lower ? a : b;
  // The tail over the density is y (1-y) / first times this sum.
  double term = 1, gain = 0, sum = 1, slope = 0;
  for (int k = 1; k < 100000; ++k) {
    const double numerator = total + k - 1, denominator = first + k;
    term *= y * numerator / denominator;
    gain += 1 / numerator - (lower ? 1 / denominator : 0);
    sum += term;
    slope += term * gain;
    if (term <= small * sum && fabs(term * gain) <= small * fabs(slope)) break;
  }
  const double scale = y * (1 - y) / first;
  if (lower) {
    // The lower tail, whose prefactor 1 / a moves too; F grows where x must fall.
    return -scale * ((log_slope - 1 / a) * sum + slope) / (1 - x);
  }
  return scale * (log_slope * sum + slope) / (1 - x);
}

} // namespace at::native::random
