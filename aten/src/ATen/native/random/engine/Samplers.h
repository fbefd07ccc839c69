// One draw from the gamma, Poisson and binomial distributions, by published rejection methods.
// Everything is computed in double from 53-bit uniforms, whatever the tensor's type. Which uniforms
// a draw takes, and in which order, is an interface: a seed has to give the same values always.
//
//   gamma      G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM
//              Transactions on Mathematical Software 26 (2000), 363-372
//   Poisson    W. Hormann, The transformed rejection method for generating Poisson random
//              variables, Insurance: Mathematics and Economics 12 (1993), 39-45: algorithm PTRS
//   binomial   W. Hormann, The generation of binomial random variates, Journal of Statistical
//              Computation and Simulation 46 (1993), 101-110: algorithm BTRS
//   small means    D. E. Knuth, The Art of Computer Programming 2, section 3.4.1 (Poisson: products
//              of uniforms); L. Devroye, Non-Uniform Random Variate Generation (1986), section X.4
//              (binomial: sums of geometric waiting times)
//
// An engine has uniform53(), in [0, 1), and normal(). Read by host and device compilers.
#pragma once

#if !defined(CRESSET_DEVICE)
#include <cmath>
#endif

#include <c10/macros/Macros.h>

namespace at::native::random {

#if defined(CRESSET_DEVICE)
#define CRESSET_SAMPLER_TABLE __device__ constexpr
#else
#define CRESSET_SAMPLER_TABLE inline constexpr
// What device code has without a namespace.
using std::ceil;
using std::exp;
using std::fabs;
using std::floor;
using std::lgamma;
using std::log;
using std::log1p;
using std::pow;
using std::sqrt;
#endif

// Of shape `alpha` and scale 1; alpha >= 0. What depends on the shape alone is computed in A, the
// type of the shape, and a third is a single precision one: the values of a seed depend on it.
template <class Engine, class A> CRESSET_HD double sample_gamma(Engine& engine, A alpha) {
  if (alpha == 0) return 0;
  // Below one: a draw of shape alpha + 1 times U^(1 / alpha) has the shape alpha (section 6).
  const bool small = alpha < 1;
  const double factor = small ? pow(1 - engine.uniform53(), static_cast<double>(1 / alpha)) : 1.0;
  const A shape = small ? alpha + 1 : alpha;
  // d (1 + x / sqrt(9 d))^3 of a normal x has nearly the density that is wanted.
  const double d = shape - static_cast<A>(1.0f / 3.0f), slope = 1 / sqrt(9 * d);
  for (;;) {
    double x = engine.normal();
    while (1 + slope * x <= 0) x = engine.normal();
    const double root = 1 + slope * x, v = root * root * root;
    const double u = 1 - engine.uniform53(), square = x * x;
    // The squeeze of the paper: nearly always enough, and without logarithms.
    const bool within = u < 1 - 0.0331 * square * square;
    if (within || log(u) < 0.5 * square + d * (1 - v + log(v))) return factor * d * v;
  }
}

namespace detail {

// Note [Transformed rejection]
// Both algorithms of Hormann draw u in (-1/2, 1/2) and v in (0, 1) and try k = floor(G(u)) with
// G(u) = (2 a / r + b) u + c, where r = 1/2 - |u|: the inverse of a distribution function with
// heavy tails, whose density is near the one wanted where a and b are fitted to it. k is accepted
// when v lies under the ratio of both densities. In the middle, r >= 0.07, it does whenever v <=
// squeeze. The numbers that fit a, b, the squeeze and the height of the ratio are those of the
// papers, tables 1 of each.
struct Hat {
  double a = 0, b = 0, c = 0, squeeze = 0;
  double height = 1; // the ratio of densities is at most 1 after division by this
  double corner = 0; // where r is below this, v > r is outside of the hat
};

// A whole number from 0 to `last` of which `log_mass` gives the logarithm of the probability, but
// for a constant that `height` contains.
template <class Engine, class LogMass> CRESSET_HD double
transformed_rejection(Engine& engine, const Hat& hat, double last, LogMass log_mass) {
  for (;;) {
    const double u = engine.uniform53() - 0.5, v = engine.uniform53();
    const double r = 0.5 - fabs(u);
    const double k = floor((2 * hat.a / r + hat.b) * u + hat.c);
    if (k < 0 || k > last) continue;
    if (r >= 0.07 && v <= hat.squeeze) return k;
    if (r < hat.corner && v > r) continue;
    if (log(v * hat.height / (hat.a / (r * r) + hat.b)) <= log_mass(k)) return k;
  }
}

// log(k!) - log(sqrt(2 pi)) - (k + 1/2) log(k + 1) + (k + 1): what Stirling's formula leaves out.
// Computed to double precision for small k; from there on three terms of the series in 1 / (k + 1)
// are as good.
CRESSET_SAMPLER_TABLE double kStirlingRest[] = {
    0.08106146679532726,  0.0413406959554093,   0.02767792568499834, 0.020790672103765093,
    0.016644691189821193, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096,
    0.009255462182712733, 0.00833056343336287};
CRESSET_HD inline double stirling_rest(double k) {
  if (k <= 9) return kStirlingRest[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

template <class Engine> CRESSET_HD double poisson_by_products(Engine& engine, double mean) {
  const double least = exp(-mean);
  double k = 0;
  for (double product = engine.uniform53(); product > least; product *= engine.uniform53()) ++k;
  return k;
}

template <class Engine> CRESSET_HD double poisson_by_rejection(Engine& engine, double mean) {
  const double b = 0.931 + 2.53 * sqrt(mean), log_mean = log(mean);
  Hat hat;
  hat.a = -0.059 + 0.02483 * b;
  hat.b = b;
  hat.c = mean + 0.43;
  hat.squeeze = 0.9277 - 3.6224 / (b - 2);
  hat.height = 1.1239 + 1.1328 / (b - 3.4);
  hat.corner = 0.013;
  return transformed_rejection(engine, hat, __builtin_huge_val(),
                               [=](double k) { return k * log_mean - mean - lgamma(k + 1); });
}

// Gaps between successes are geometric: counts those that fit into the trials.
template <class Engine, class A> CRESSET_HD double binomial_by_gaps(Engine& engine, A trials, A p) {
  const double log_failure = log1p(-p);
  double used = 0, successes = -1;
  for (; used <= trials; ++successes) used += ceil(log(engine.uniform53()) / log_failure);
  return successes;
}

// p <= 1/2. The mass of k is taken relative to that of the most probable number of successes, with
// factorials by Stirling's formula, whose large terms then cancel. Mean, deviation, odds and mode
// are computed in A, the type of the tensor, on which the values of a seed depend.
template <class Engine, class A>
CRESSET_HD double binomial_by_rejection(Engine& engine, A count, A p) {
  const A mean = count * p, deviation = sqrt(mean * (1 - p)), odds = p / (1 - p);
  Hat hat;
  hat.b = 1.15 + 2.53 * deviation;
  hat.a = -0.0873 + 0.0248 * hat.b + 0.01 * p;
  hat.c = mean + 0.5;
  hat.squeeze = 0.92 - 4.2 / hat.b;
  hat.height = (2.83 + 5.1 / hat.b) * deviation;
  const double trials = count, ratio = odds, mode = floor((count + 1) * p);
  const double other = trials - mode + 1;
  const double at_mode = (mode + 0.5) * log((mode + 1) / (ratio * other)) + stirling_rest(mode) +
                         stirling_rest(trials - mode);
  return transformed_rejection(engine, hat, trials, [=](double k) {
    const double rest = trials - k + 1;
    return at_mode + (trials + 1) * log(other / rest) + (k + 0.5) * log(ratio * rest / (k + 1)) -
           stirling_rest(k) - stirling_rest(trials - k);
  });
}

} // namespace detail

// mean >= 0.
template <class Engine> CRESSET_HD double sample_poisson(Engine& engine, double mean) {
  if (mean == 0) return 0;
  return mean < 10 ? detail::poisson_by_products(engine, mean)
                   : detail::poisson_by_rejection(engine, mean);
}

// Any p: failures are counted where they are rarer than successes.
template <class Engine, class A> CRESSET_HD double sample_binomial(Engine& engine, A trials, A p) {
  if (trials <= 0 || p <= 0) return 0;
  if (p >= 1) return trials;
  if (trials != trials || p != p) return __builtin_nan("");
  const bool failures = p > 0.5;
  const A rare = failures ? 1 - p : p;
  const double count = trials * rare >= 10 ? detail::binomial_by_rejection(engine, trials, rare)
                                           : detail::binomial_by_gaps(engine, trials, rare);
  return failures ? trials - count : count;
}

} // namespace at::native::random
