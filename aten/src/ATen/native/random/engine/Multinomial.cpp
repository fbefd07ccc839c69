// Sampling of categories. With replacement: inversion of the cumulated weights. Without: the race
// of exponential clocks, in which category i finishes first with probability proportional to its
// weight; the samples are the first finishers, in order (P. Efraimidis and P. Spirakis, Weighted
// random sampling with a reservoir, Information Processing Letters 97 (2006), 181-185).

#include <ATen/native/random/engine/RawFill.h>

#include <ATen/native/random/engine/Visit.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace at::native::random {
namespace {

/// The type sums and quotients are computed in.
template <class T> using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T> void check_weights(const T* weights, int64_t rows, int64_t categories) {
  parallel_for(0, rows, std::max<int64_t>(1, 32768 / categories), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      Wide<T> sum = 0;
      for (int64_t i = 0; i < categories; ++i) {
        const Wide<T> w = static_cast<Wide<T>>(weights[r * categories + i]);
        TORCH_CHECK(w >= 0 && std::isfinite(w),
                    "probability tensor contains either `inf`, `nan` or element < 0");
        sum += w;
      }
      TORCH_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
    }
  });
}

template <class T> void sample_with_replacement(Mt19937& engine, const T* weights,
                                                int64_t categories, int64_t samples, int64_t* out) {
  std::vector<Wide<T>> cumulated(static_cast<size_t>(categories));
  Wide<T> sum = 0;
  for (int64_t i = 0; i < categories; ++i) {
    sum += static_cast<Wide<T>>(weights[i]);
    cumulated[i] = sum;
  }
  for (Wide<T>& c : cumulated) c /= sum;
  for (int64_t s = 0; s < samples; ++s) {
    const double u = engine.uniform53();
    const auto found = std::lower_bound(cumulated.begin(), cumulated.end() - 1, u,
                                        [](Wide<T> c, double value) { return c < value; });
    out[s] = found - cumulated.begin();
  }
}

template <class T> struct Runner {
  Wide<T> speed;
  int64_t index;
};

/// Ties (low-precision weights, weights of zero) are settled by the selection algorithm itself, so
/// the algorithm and its switching point are part of the contract.
template <class T> void sample_without_replacement(const T* weights, int64_t categories,
                                                   int64_t samples, const T* clocks, int64_t* out) {
  std::vector<Runner<T>> runners(static_cast<size_t>(categories));
  for (int64_t i = 0; i < categories; ++i) {
    const Wide<T> speed = static_cast<Wide<T>>(weights[i]) / static_cast<Wide<T>>(clocks[i]);
    runners[i] = {static_cast<Wide<T>>(T(speed)), i};
  }
  // Fastest first; 0 / 0 (no weight, a clock rounded to zero) counts as fastest.
  Steps steps;
  const auto faster = [&steps](const Runner<T>& a, const Runner<T>& b) {
    steps.add(2);
    return (std::isnan(a.speed) && !std::isnan(b.speed)) || a.speed > b.speed;
  };
  const auto last = runners.begin() + samples;
  if (samples == 1) {
    out[0] = std::min_element(runners.begin(), runners.end(), faster)->index;
    return;
  }
  if (samples * 64 <= categories) {
    std::partial_sort(runners.begin(), last, runners.end(), faster);
  } else {
    std::nth_element(runners.begin(), last - 1, runners.end(), faster);
    std::sort(runners.begin(), last - 1, faster);
  }
  for (int64_t s = 0; s < samples; ++s) out[s] = runners[s].index;
}

} // namespace

void fill_multinomial(Mt19937& engine, ScalarType dtype, const void* weights, int64_t rows,
                      int64_t categories, int64_t samples, bool replacement, int64_t* out,
                      bool by_column) {
  if (rows == 0 || samples == 0) return;
  visit_floating(dtype, "multinomial", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = static_cast<const T*>(weights);
    check_weights(data, rows, categories);
    if (replacement && samples > 1) {
      for (int64_t r = 0; r < rows; ++r) {
        sample_with_replacement(engine, data + r * categories, categories, samples,
                                out + r * samples);
      }
      return;
    }
    std::vector<T> clocks(static_cast<size_t>(rows * categories));
    fill_exponential(engine, dtype, clocks.data(), rows * categories, 1.0);
    if (by_column) {
      const std::vector<T> drawn(clocks);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < categories; ++i) clocks[r * categories + i] = drawn[i * rows + r];
    }
    for (int64_t r = 0; r < rows; ++r) {
      sample_without_replacement(data + r * categories, categories, samples,
                                 clocks.data() + r * categories, out + r * samples);
    }
  });
}

} // namespace at::native::random
