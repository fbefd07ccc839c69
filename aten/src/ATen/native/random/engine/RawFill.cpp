// Continuous distributions and Bernoulli trials. The draws are taken in slabs through the engine's
// bulk path and then transformed; formulas and their order of operations were found by comparing
// bits with PyTorch, so constants such as -1 / lambda are deliberately not folded differently.

#include <ATen/native/random/engine/RawFill.h>

#include <ATen/native/random/engine/Kernels.h>
#include <ATen/native/random/engine/Visit.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <c10/util/MathConstants.h>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace at::native::random {
namespace {

constexpr int64_t kSlab = 2048;                 // draws on the stack at a time
constexpr int64_t kWideSlab = int64_t{1} << 16; // elements whose draws are on the heap at a time
constexpr int64_t kGrain = 2048;                // elements with a logarithm or a tangent in each
constexpr int64_t kNormalGrain = 32768;

template <class T> constexpr bool is_reduced =
    std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

uint64_t join(const uint32_t* pair) { return static_cast<uint64_t>(pair[0]) << 32 | pair[1]; }

/// A double becomes an element: reduced types are rounded through float.
template <class T> T narrow(double value) {
  if constexpr (is_reduced<T>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<T>) {
    // What x86 makes of it: out of range gives the smallest integer of 64 or 32 bits, whose low
    // bits are kept. Written out because the plain cast is undefined there.
    using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr double kLimit = sizeof(T) == 8 ? 0x1p63 : 0x1p31;
    const Wide wide = value >= -kLimit && value < kLimit ? static_cast<Wide>(value)
                                                         : std::numeric_limits<Wide>::min();
    return static_cast<T>(wide);
  } else {
    return static_cast<T>(value);
  }
}

/// out[i] = f(two draws), the draws in order and f in parallel.
template <class T, class F>
void fill_from_pairs(Mt19937& engine, T* out, int64_t n, int64_t grain, const F& f) {
  std::vector<uint32_t> raw(static_cast<size_t>(2 * std::min(n, kWideSlab)));
  for (int64_t done = 0; done < n; done += kWideSlab) {
    const int64_t count = std::min(n - done, kWideSlab);
    engine.fill(raw.data(), 2 * count);
    parallel_for(0, count, grain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) out[done + i] = f(join(&raw[2 * i]));
    });
  }
}

/// 24-bit uniforms as fma(u, range, from), in slabs handed to sink(floats, offset, count).
template <class Sink>
void uniform_slabs(Mt19937& engine, int64_t n, float range, float from, const Sink& sink) {
  const EngineKernels& kernels = engine_kernels();
  uint32_t raw[kSlab];
  float values[kSlab];
  for (int64_t done = 0; done < n; done += kSlab) {
    const int64_t count = std::min(n - done, kSlab);
    engine.fill(raw, count);
    kernels.uniform_f32(raw, values, count, range, from);
    sink(values, done, count);
  }
}

void uniform_f32(Mt19937& engine, float* out, int64_t n, float range, float from) {
  const EngineKernels& kernels = engine_kernels();
  uint32_t raw[kSlab];
  for (int64_t done = 0; done < n; done += kSlab) {
    const int64_t count = std::min(n - done, kSlab);
    engine.fill(raw, count);
    kernels.uniform_f32(raw, out + done, count, range, from);
  }
}

void uniform_f64(Mt19937& engine, double* out, int64_t n, double range, double from) {
  const EngineKernels& kernels = engine_kernels();
  uint32_t raw[kSlab];
  constexpr int64_t kPairs = kSlab / 2;
  for (int64_t done = 0; done < n; done += kPairs) {
    const int64_t count = std::min(n - done, kPairs);
    engine.fill(raw, 2 * count);
    kernels.uniform_f64(raw, out + done, count, range, from);
  }
}

/// Blocks of 16 with pairs (j, j + 8), as the single-precision kernel has them.
void normal_f64(double* data, int64_t n, double mean, double std) {
  for (int64_t block = 0; block < n; block += 16) {
    for (double *first = data + block, *end = first + 8; first < end; ++first) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - first[0]));
      const double theta = 2.0 * c10::pi<double> * first[8];
      first[0] = std::fma(radius * std::cos(theta), std, mean);
      first[8] = std::fma(radius * std::sin(theta), std, mean);
    }
  }
}

/// All uniforms first, then the transformation of the whole blocks; when n is no multiple of 16 the
/// last 16 elements are then drawn again.
template <class T, class Uniform, class Normal>
void normal_blocks(T* out, int64_t n, const Uniform& uniform, const Normal& normal) {
  uniform(out, n);
  const int64_t whole = n - n % 16;
  parallel_for(0, whole, kNormalGrain, [&](int64_t b, int64_t e) { normal(out + b, e - b); });
  if (whole != n) {
    uniform(out + n - 16, 16);
    normal(out + n - 16, 16);
  }
}

/// Reduced types draw block by block: the redrawn tail has not been drawn before.
template <class T> void normal_reduced(Mt19937& engine, T* out, int64_t n, float mean, float std) {
  const EngineKernels& kernels = engine_kernels();
  const auto block = [&](T* to, int64_t count) {
    float values[kSlab];
    uniform_f32(engine, values, count, 1.0f, 0.0f);
    kernels.normal_f32(values, count, mean, std);
    for (int64_t i = 0; i < count; ++i) to[i] = T(values[i]);
  };
  const int64_t whole = n - n % 16;
  for (int64_t done = 0; done < whole; done += kSlab)
    block(out + done, std::min(whole - done, kSlab));
  if (whole != n) block(out + n - 16, 16);
}

/// u in [0, 1) with 53 bits is below p exactly when its integer is below ceil(p 2^53).
uint64_t bernoulli_threshold(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p53)); }

template <class P, class T> void bernoulli_each(Mt19937& engine, T* out, int64_t n, const P* p) {
  for (int64_t i = 0; i < n; ++i) {
    const auto chance = static_cast<std::conditional_t<is_reduced<P>, float, P>>(p[i]);
    TORCH_CHECK(chance >= 0 && chance <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got ",
                static_cast<double>(chance), " at element ", i);
    bool success;
    if constexpr (std::is_same_v<P, double>) {
      success = engine.uniform53() < chance;
    } else {
      success = engine.uniform24() < chance;
    }
    out[i] = static_cast<T>(success ? 1 : 0);
  }
}

} // namespace

void fill_uniform(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double from, double to) {
  visit_floating(dtype, "uniform_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    const float low = static_cast<float>(from), high = static_cast<float>(to);
    if constexpr (std::is_same_v<T, double>) {
      uniform_f64(engine, data, n, to - from, from);
    } else if constexpr (std::is_same_v<T, float>) {
      uniform_f32(engine, data, n, high - low, low);
    } else {
      // Rounding may reach the upper bound, which is excluded: such a draw becomes the lower one.
      const T upper(high), lower(low);
      uniform_slabs(engine, n, high - low, low,
                    [&](const float* values, int64_t position, int64_t count) {
                      for (int64_t i = 0; i < count; ++i) {
                        const T value(values[i]);
                        data[position + i] = value == upper ? lower : value;
                      }
                    });
    }
  });
}

void fill_normal_one_by_one(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double mean,
                            double std) {
  visit_floating(dtype, "normal_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) data[i] = narrow<T>(std::fma(engine.normal(), std, mean));
  });
}

void fill_normal(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double mean, double std) {
  if (n < 16) return fill_normal_one_by_one(engine, dtype, out, n, mean, std);
  visit_floating(dtype, "normal_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    const float mean32 = static_cast<float>(mean), std32 = static_cast<float>(std);
    if constexpr (std::is_same_v<T, double>) {
      normal_blocks(
          data, n, [&](T* to, int64_t count) { uniform_f64(engine, to, count, 1.0, 0.0); },
          [&](T* to, int64_t count) { normal_f64(to, count, mean, std); });
    } else if constexpr (std::is_same_v<T, float>) {
      const EngineKernels& kernels = engine_kernels();
      normal_blocks(
          data, n, [&](T* to, int64_t count) { uniform_f32(engine, to, count, 1.0f, 0.0f); },
          [&](T* to, int64_t count) { kernels.normal_f32(to, count, mean32, std32); });
    } else {
      normal_reduced(engine, data, n, mean32, std32);
    }
  });
}

void fill_log_normal(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double mean,
                     double std) {
  visit_floating(dtype, "log_normal_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) {
      data[i] = narrow<T>(std::exp(std::fma(engine.normal(), std, mean)));
    }
  });
}

void fill_exponential(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double lambda) {
  visit_floating(dtype, "exponential_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const double scale = -1.0 / lambda;
    fill_from_pairs(engine, static_cast<T*>(out), n, kGrain, [scale](uint64_t draw) {
      return narrow<T>(scale * std::log1p(-Mt19937::to_uniform53(draw)));
    });
  });
}

void fill_cauchy(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double median,
                 double sigma) {
  visit_floating(dtype, "cauchy_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_from_pairs(engine, static_cast<T*>(out), n, kGrain, [=](uint64_t draw) {
      const double u = Mt19937::to_uniform53(draw);
      return narrow<T>(std::fma(sigma, std::tan(c10::pi<double> * (u - 0.5)), median));
    });
  });
}

void fill_geometric(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double p) {
  visit_common(dtype, "geometric_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const double scale = std::log(1.0 - p);
    fill_from_pairs(engine, static_cast<T*>(out), n, kGrain, [scale](uint64_t draw) {
      return narrow<T>(std::ceil(std::log(Mt19937::to_uniform53(draw)) / scale));
    });
  });
}

void fill_bernoulli(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double p) {
  visit_common_and_bool(dtype, "bernoulli_scalar_cpu_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    const uint64_t threshold = bernoulli_threshold(p);
    constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
    const T values[2] = {static_cast<T>(0), static_cast<T>(1)};
    uint32_t raw[kSlab];
    constexpr int64_t kPairs = kSlab / 2;
    for (int64_t done = 0; done < n; done += kPairs) {
      const int64_t count = std::min(n - done, kPairs);
      engine.fill(raw, 2 * count);
      for (int64_t i = 0; i < count; ++i) {
        data[done + i] = values[(join(raw + 2 * i) & kMask) < threshold];
      }
    }
  });
}

void fill_bernoulli_tensor(Mt19937& engine, ScalarType dtype, void* out, int64_t n,
                           ScalarType p_dtype, const void* p) {
  visit_common_and_bool(dtype, "bernoulli_tensor_cpu_self_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    visit_floating(p_dtype, "bernoulli_tensor_cpu_p_", [&](auto p_tag) {
      using P = typename decltype(p_tag)::type;
      bernoulli_each(engine, static_cast<T*>(out), n, static_cast<const P*>(p));
    });
  });
}

} // namespace at::native::random
