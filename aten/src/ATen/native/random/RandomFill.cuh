// Random fills. A thread makes one group of four 32-bit numbers, for four elements, or for two
// where an element needs 64 bits. Element i of the tensor, in memory order, always belongs to group
// i / 4 (or i / 2): the launch and the GPU change nothing.
#include <ATen/cuda/device/Philox.cuh>
#include <ATen/native/random/RandomFill.args.h>

namespace at::device {

struct FloatDraws {
  using type = float;
  static constexpr int kCount = 4;
  const Draws& d;
  CRESSET_DEVICE_FN float uniform(int i) const { return d.uniform(i); }
  CRESSET_DEVICE_FN float open(int i) const { return d.open(i); }
  CRESSET_DEVICE_FN static float log(float x) { return logf(x); }
  CRESSET_DEVICE_FN static float exp(float x) { return expf(x); }
  // A normal number is the square root of a number above zero times the sine or cosine of an angle
  // from a whole turn, each drawn with 24 bits: the hardware's functions, right to 2^-21, lose
  // nothing that the draw had.
#if defined(__CUDA_ARCH__)
  CRESSET_DEVICE_FN static float root(float x) {
    float r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
  }
  CRESSET_DEVICE_FN static void circle(float x, float& s, float& c) {
    const float angle = (x - 0.5f) * 6.28318530717958648f; // half a turn away, where both are best
    s = -__sinf(angle);
    c = -__cosf(angle);
  }
#else
  CRESSET_DEVICE_FN static float root(float x) { return sqrtf(x); }
  CRESSET_DEVICE_FN static void circle(float x, float& s, float& c) { sincospif(2 * x, &s, &c); }
#endif
  CRESSET_DEVICE_FN static float tan_pi(float x) { return sinpif(x) / cospif(x); }
};
struct DoubleDraws {
  using type = double;
  static constexpr int kCount = 2;
  const Draws& d;
  CRESSET_DEVICE_FN double uniform(int i) const { return d.uniform_wide(i); }
  CRESSET_DEVICE_FN double open(int i) const { return d.open_wide(i); }
  CRESSET_DEVICE_FN static double log(double x) { return ::log(x); }
  CRESSET_DEVICE_FN static double exp(double x) { return ::exp(x); }
  CRESSET_DEVICE_FN static double root(double x) { return sqrt(x); }
  CRESSET_DEVICE_FN static double tan_pi(double x) { return sinpi(x) / cospi(x); }
  CRESSET_DEVICE_FN static void circle(double x, double& s, double& c) { sincospi(2 * x, &s, &c); }
};

// One group of floating numbers of the distribution.
template <class D>
CRESSET_DEVICE_FN void draw_group(const D& d, const RandomSettings& s, typename D::type* out) {
  using A = typename D::type;
  const A a = static_cast<A>(s.a), b = static_cast<A>(s.b);
  switch (s.distribution) {
  case kNormal:
  case kLogNormal:
    CRESSET_UNROLL
    for (int i = 0; i < D::kCount; i += 2) { // Box and Muller
      const A radius = D::root(A(-2) * D::log(d.open(i)));
      A sine, cosine;
      D::circle(d.uniform(i + 1), sine, cosine);
      out[i] = a + b * (radius * cosine);
      out[i + 1] = a + b * (radius * sine);
      if (s.distribution == kLogNormal) {
        out[i] = D::exp(out[i]);
        out[i + 1] = D::exp(out[i + 1]);
      }
    }
    return;
  case kExponential:
    CRESSET_UNROLL
    for (int i = 0; i < D::kCount; ++i) out[i] = -D::log(d.open(i)) / a;
    return;
  case kCauchy:
    CRESSET_UNROLL
    for (int i = 0; i < D::kCount; ++i) out[i] = a + b * D::tan_pi(d.open(i) - A(0.5));
    return;
  case kGeometric:
    CRESSET_UNROLL
    for (int i = 0; i < D::kCount; ++i) {
      const A trials = D::log(d.open(i)) / static_cast<A>(log1p(-s.a));
      out[i] = trials > A(1) ? -floor(-trials) : A(1);
    }
    return;
  case kBernoulli:
    CRESSET_UNROLL
    for (int i = 0; i < D::kCount; ++i) out[i] = d.uniform(i) < a ? A(1) : A(0);
    return;
  default:
    CRESSET_UNROLL
    for (int i = 0; i < D::kCount; ++i) out[i] = a + d.uniform(i) * (b - a);
    return;
  }
}

// The upper bound of kUniform is not part of the range, also after rounding.
template <class T, class A> CRESSET_DEVICE_FN T stored(A value, const RandomSettings& s) {
  const T result = convert<T>(value);
  if (s.distribution == kUniform && convert<double>(result) >= s.b && s.b > s.a)
    return convert<T>(static_cast<A>(s.a));
  return result;
}

template <class T> CRESSET_DEVICE_FN void random_fill(T* out, const RandomSettings& s) {
  const long group = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int count = s.wide ? 2 : 4;
  const long start = group * count;
  if (start >= s.n) return;
  const Draws draws = draws_of(s.state, static_cast<unsigned long>(group));
  Pack<T, 4> result;
  if (s.distribution == kInteger) {
    CRESSET_UNROLL
    for (int i = 0; i < 4; ++i) {
      const unsigned long number = s.wide ? draws.wide(i & 1) : draws.v[i];
      const unsigned long reduced = s.range == 0 ? number : number % s.range;
      result.v[i] = convert<T>(static_cast<long>(reduced + static_cast<unsigned long>(s.base)));
    }
  } else if (s.wide) {
    double values[2];
    draw_group(DoubleDraws{draws}, s, values);
    result.v[0] = stored<T>(values[0], s);
    result.v[1] = stored<T>(values[1], s);
  } else {
    float values[4];
    draw_group(FloatDraws{draws}, s, values);
    CRESSET_UNROLL
    for (int i = 0; i < 4; ++i) result.v[i] = stored<T>(values[i], s);
  }
  constexpr unsigned long kMisaligned = alignof(Pack<T, 4>) - 1;
  if (count == 4 && start + 4 <= s.n &&
      (reinterpret_cast<unsigned long>(out + start) & kMisaligned) == 0) {
    store_pack<4>(out + start, result);
    return;
  }
  CRESSET_UNROLL
  for (int i = 0; i < 4; ++i)
    if (i < count && start + i < s.n) out[start + i] = result.v[i];
}

// 1 with the probability of each element.
template <class T>
CRESSET_DEVICE_FN void bernoulli_each(T* out, const float* p, const RandomSettings& s) {
  const long group = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (group * 4 >= s.n) return;
  const Draws draws = draws_of(s.state, static_cast<unsigned long>(group));
  CRESSET_UNROLL
  for (int i = 0; i < 4; ++i) {
    const long element = group * 4 + i;
    if (element < s.n) out[element] = convert<T>(draws.uniform(i) < p[element] ? 1.0f : 0.0f);
  }
}

// x / (1 - p) where kept, else 0, with the mask of what was kept.
template <class T>
CRESSET_DEVICE_FN void dropout(const T* in, T* out, bool* mask, const RandomSettings& s) {
  using A = opmath_t<T>;
  const long group = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long start = group * 4;
  if (start >= s.n) return;
  const Draws draws = draws_of(s.state, static_cast<unsigned long>(group));
  const float keep = static_cast<float>(s.a);
  const A scale = s.a > 0 ? static_cast<A>(1 / s.a) : A(0);
  if (start + 4 <= s.n) { // whole tensors are aligned: see the host side
    const Pack<T, 4> x = load_pack<4>(in + start);
    Pack<T, 4> y;
    Pack<bool, 4> kept;
    CRESSET_UNROLL
    for (int i = 0; i < 4; ++i) {
      kept.v[i] = draws.uniform(i) < keep;
      y.v[i] = convert<T>(kept.v[i] ? convert<A>(x.v[i]) * scale : A(0));
    }
    store_pack<4>(out + start, y);
    store_pack<4>(mask + start, kept);
    return;
  }
  CRESSET_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (start + i >= s.n) continue;
    const bool kept = draws.uniform(i) < keep;
    out[start + i] = convert<T>(kept ? convert<A>(in[start + i]) * scale : A(0));
    mask[start + i] = kept;
  }
}

// Categories drawn with replacement: cdf holds running sums of the weights of each row.
CRESSET_DEVICE_FN void multinomial_search(const double* cdf, long* out, long rows, long categories,
                                          long samples, const RandomSettings& s) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * samples) return;
  const Draws draws = draws_of(s.state, static_cast<unsigned long>(i));
  const double* row = cdf + i / samples * categories;
  const double threshold = draws.uniform_wide(0) * row[categories - 1];
  long low = 0, high = categories - 1; // the first category whose running sum exceeds `at`
  while (low < high) {
    const long middle = (low + high) / 2;
    if (row[middle] > threshold)
      high = middle;
    else
      low = middle + 1;
  }
  out[i] = low;
}

// Keys for a random order: 63 bits each, by element.
CRESSET_DEVICE_FN void random_keys(unsigned long* keys, const RandomSettings& s) {
  const long group = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (group * 2 >= s.n) return;
  const Draws draws = draws_of(s.state, static_cast<unsigned long>(group));
  CRESSET_UNROLL
  for (int i = 0; i < 2; ++i)
    if (group * 2 + i < s.n) keys[group * 2 + i] = draws.wide(i) >> 1;
}

} // namespace at::device

#define CRESSET_RANDOM(T)                                                                          \
  CRESSET_KERNEL(256) random_fill_##T(cresset_##T* out, at::device::RandomSettings s) {            \
    at::device::random_fill(out, s);                                                               \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  bernoulli_each_##T(cresset_##T* out, const float* p, at::device::RandomSettings s) {             \
    at::device::bernoulli_each(out, p, s);                                                         \
  }
CRESSET_RANDOM(f32)
CRESSET_RANDOM(f64)
CRESSET_RANDOM(f16)
CRESSET_RANDOM(bf16)
CRESSET_RANDOM(u8)
CRESSET_RANDOM(i8)
CRESSET_RANDOM(i16)
CRESSET_RANDOM(i32)
CRESSET_RANDOM(i64)
CRESSET_RANDOM(u16)
CRESSET_RANDOM(u32)
CRESSET_RANDOM(u64)
CRESSET_RANDOM(bool)

#define CRESSET_DROPOUT(T)                                                                         \
  CRESSET_KERNEL(256)                                                                              \
  dropout_##T(const cresset_##T* in, cresset_##T* out, bool* mask, at::device::RandomSettings s) { \
    at::device::dropout(in, out, mask, s);                                                         \
  }
CRESSET_DROPOUT(f32)
CRESSET_DROPOUT(f64)
CRESSET_DROPOUT(f16)
CRESSET_DROPOUT(bf16)

CRESSET_KERNEL(256) random_keys(unsigned long* keys, at::device::RandomSettings s) {
  at::device::random_keys(keys, s);
}
CRESSET_KERNEL(256)
multinomial_search(const double* cdf, long* out, long rows, long categories, long samples,
                   at::device::RandomSettings s) {
  at::device::multinomial_search(cdf, out, rows, categories, samples, s);
}
