// One draw from the gamma, Poisson and binomial distributions, by the published rejection methods:
// Marsaglia and Tsang 2000 for gamma, Hormann 1993 (transformed rejection) for large Poisson and
// binomial means, products of uniforms and sums of geometric gaps for small ones. They compute in
// double from 53-bit uniforms, whatever the tensor's type.
#pragma once
#include <cmath>

#include <ATen/native/random/engine/Mt19937.h>

namespace at::native::random {

// Of shape `alpha` and scale 1; alpha > 0. What depends on the shape alone is computed in A, the
// type of the shape, and a third is a single precision one: the values that a seed gives in PyTorch
// are defined so.
template <class A> double sample_gamma(Mt19937& engine, A alpha) {
  double boost = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    boost = std::pow(1 - engine.uniform53(), static_cast<double>(1 / alpha));
    alpha += 1;
  }
  const A shifted = alpha - static_cast<A>(1.0f / 3.0f);
  const double d = shifted;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = 0, y = 0;
    do {
      x = engine.normal();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y;
    const double u = 1 - engine.uniform53();
    const double xx = x * x;
    if (u < 1 - 0.0331 * xx * xx) return boost * d * v;
    if (std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return boost * d * v;
  }
}

inline double sample_poisson(Mt19937& engine, double lambda) {
  if (lambda == 0) return 0;
  if (lambda < 10) {
    const double floor = std::exp(-lambda);
    double product = 1;
    for (int64_t k = 0;; ++k) {
      product *= engine.uniform53();
      if (product <= floor) return static_cast<double>(k);
    }
  }
  const double log_lambda = std::log(lambda);
  const double b = 0.931 + 2.53 * std::sqrt(lambda);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = engine.uniform53() - 0.5;
    const double v = engine.uniform53();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + lambda + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -lambda + k * log_lambda - std::lgamma(k + 1)) {
      return k;
    }
  }
}

namespace detail {
// Gaps between successes are geometric: count those that fit into `count` trials.
inline double binomial_by_gaps(Mt19937& engine, double count, double p) {
  const double log_failure = std::log1p(-p);
  double trials = 0;
  for (double successes = 0;; ++successes) {
    trials += std::ceil(std::log(engine.uniform53()) / log_failure);
    if (trials > count) return successes;
  }
}
// log(k!) less its Stirling approximation.
inline double stirling_tail(double k) {
  static constexpr double kSmall[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                      0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                      0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                      0.00833056343336287};
  if (k <= 9) return kSmall[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}
inline double binomial_by_rejection(Mt19937& engine, double count, double p) {
  const double spread = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * spread;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * spread;
  const double m = std::floor((count + 1) * p);
  for (;;) {
    const double u = engine.uniform53() - 0.5;
    double v = engine.uniform53();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_r) return k;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                         stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}
} // namespace detail

inline double sample_binomial(Mt19937& engine, double count, double p) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (std::isnan(count) || std::isnan(p)) return NAN;
  if (p > 0.5) return count - sample_binomial(engine, count, 1 - p);
  return count * p >= 10 ? detail::binomial_by_rejection(engine, count, p)
                         : detail::binomial_by_gaps(engine, count, p);
}

} // namespace at::native::random
