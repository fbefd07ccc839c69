// Samples of the gamma, Poisson and binomial distributions (engine/Samplers.h) and the derivatives
// of gamma and beta samples (PathwiseGradient.h), a thread for each element. Everything is computed
// in double, as on the CPU.
#include <ATen/cuda/device/Philox.cuh>
#include <ATen/native/random/PathwiseGradient.h>
#include <ATen/native/random/engine/Samplers.h>

namespace at::device {

// The stream of one element. Rejections take what they need of it; how much a call sets aside for
// each element is far beyond that.
class PhiloxEngine {
 public:
  CRESSET_DEVICE_FN PhiloxEngine(const PhiloxState& state, unsigned long element)
      : state_(state), element_(element) {}
  CRESSET_DEVICE_FN double uniform53() {
    if (used_ % 2 == 0) {
      PhiloxState here = state_;
      here.offset += 2 * used_;
      draws_ = draws_of(here, element_);
    }
    return draws_.uniform_wide(static_cast<int>(used_++ % 2));
  }
  // Box and Muller; the second of a pair is kept.
  CRESSET_DEVICE_FN double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = sqrt(-2 * log(1 - uniform53()));
    double sine, cosine;
    sincospi(2 * uniform53(), &sine, &cosine);
    spare_ = radius * sine;
    has_spare_ = true;
    return radius * cosine;
  }

 private:
  PhiloxState state_;
  unsigned long element_, used_ = 0;
  Draws draws_;
  double spare_ = 0;
  bool has_spare_ = false;
};

CRESSET_DEVICE_FN long sampled_element() {
  return static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

} // namespace at::device

#define CRESSET_DISTRIBUTIONS(T)                                                                   \
  CRESSET_KERNEL(128)                                                                              \
  sample_gamma_##T(const cresset_##T* shape, cresset_##T* out, long n,                             \
                   at::device::PhiloxState state) {                                                \
    using namespace at::device;                                                                    \
    const long i = sampled_element();                                                              \
    if (i >= n) return;                                                                            \
    PhiloxEngine engine(state, static_cast<unsigned long>(i));                                     \
    const double draw =                                                                            \
        at::native::random::sample_gamma(engine, convert<opmath_t<cresset_##T>>(shape[i]));        \
    /* A draw that underflows would make the logarithm of the density infinite. */                 \
    const double least = static_cast<double>(c10::numeric_limits<cresset_##T>::min());             \
    out[i] = convert<cresset_##T>(draw < least ? least : draw);                                    \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  sample_poisson_##T(const cresset_##T* rate, cresset_##T* out, long n,                            \
                     at::device::PhiloxState state) {                                              \
    using namespace at::device;                                                                    \
    const long i = sampled_element();                                                              \
    if (i >= n) return;                                                                            \
    PhiloxEngine engine(state, static_cast<unsigned long>(i));                                     \
    out[i] = convert<cresset_##T>(                                                                 \
        at::native::random::sample_poisson(engine, convert<double>(rate[i])));                     \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  sample_binomial_##T(const cresset_##T* count, const cresset_##T* prob, cresset_##T* out, long n, \
                      at::device::PhiloxState state) {                                             \
    using namespace at::device;                                                                    \
    const long i = sampled_element();                                                              \
    if (i >= n) return;                                                                            \
    PhiloxEngine engine(state, static_cast<unsigned long>(i));                                     \
    using A = opmath_t<cresset_##T>;                                                               \
    out[i] = convert<cresset_##T>(                                                                 \
        at::native::random::sample_binomial(engine, convert<A>(count[i]), convert<A>(prob[i])));   \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  gamma_slope_##T(const cresset_##T* shape, const cresset_##T* sample, cresset_##T* out, long n) { \
    using namespace at::device;                                                                    \
    const long i = sampled_element();                                                              \
    if (i >= n) return;                                                                            \
    out[i] = convert<cresset_##T>(                                                                 \
        at::native::random::gamma_slope(convert<double>(shape[i]), convert<double>(sample[i]),     \
                                        at::native::random::small_term<cresset_##T>()));           \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  dirichlet_slope_##T(const cresset_##T* x, const cresset_##T* alpha, const cresset_##T* total,    \
                      cresset_##T* out, long n) {                                                  \
    using namespace at::device;                                                                    \
    const long i = sampled_element();                                                              \
    if (i >= n) return;                                                                            \
    const double a = convert<double>(alpha[i]), b = convert<double>(total[i]) - a;                 \
    out[i] = convert<cresset_##T>(at::native::random::beta_slope(                                  \
        convert<double>(x[i]), a, b, at::native::random::small_term<cresset_##T>()));              \
  }
CRESSET_DISTRIBUTIONS(f32)
CRESSET_DISTRIBUTIONS(f64)
CRESSET_DISTRIBUTIONS(f16)
CRESSET_DISTRIBUTIONS(bf16)
