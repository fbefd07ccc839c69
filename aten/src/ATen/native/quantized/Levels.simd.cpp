// Loops over registers for what every dynamic product does to its activations (bounds, 8-bit
// levels), plain loops that the compiler turns into registers for the rest. Compiled without
// contraction of products and sums, which would change how ties round. See Levels.h.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("vect-cost-model=dynamic") // for loops whose length is not known
#endif
#include <ATen/native/quantized/Levels.h>

#include <cstring>
#include <limits>

#include <ATen/vec/Vec.h>

namespace at::quantized::levels {
namespace CRESSET_ISA {
namespace {

using Reals = vec::Vec<float>;
constexpr int kLanes = Reals::kLanes;

C10_ALWAYS_INLINE Reals lesser(Reals a, Reals b) { return select(a < b, a, b); }
C10_ALWAYS_INLINE Reals greater(Reals a, Reals b) { return select(a > b, a, b); }

// Rounds half to even, like rint: with this added, a small number has its integer part, two's
// complement, in the lowest bits.
constexpr float kRounder = 12582912.0f; // 1.5 * 2^23

// Limits are integers, so that limiting before rounding is the same as after it. The order of
// operands makes NaN the upper limit.
template <class T> struct ToLevels {
  static constexpr float kLow = std::numeric_limits<T>::min();
  static constexpr float kHigh = std::numeric_limits<T>::max();
  // Enough for the compiler to narrow whole registers.
  static constexpr int kStep = 64;
  Reals inverse, zero_point;

  C10_ALWAYS_INLINE void operator()(const float* values, T* levels) const {
    int32_t numbers[kStep];
#pragma GCC unroll 16
    for (int i = 0; i < kStep; i += kLanes) {
      const Reals level = Reals::load(values + i) * inverse + zero_point;
      const Reals limited = select(level < Reals(kLow), Reals(kLow), level);
      const Reals sum = select(limited < Reals(kHigh), limited, Reals(kHigh)) + Reals(kRounder);
      sum.store(numbers + i);
    }
    for (int i = 0; i < kStep; ++i) levels[i] = static_cast<T>(numbers[i]);
  }
};

template <class T> void quantize_small(const float* values, void* out, int64_t n, Scaling s) {
  const ToLevels<T> convert{Reals(1.0f / s.scale), Reals(s.zero_point)};
  constexpr int kStep = ToLevels<T>::kStep;
  T* levels = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) convert(values + i, levels + i);
  if (i == n) return;
  float rest[kStep] = {};
  T last[kStep];
  std::memcpy(rest, values + i, static_cast<size_t>(n - i) * sizeof(float));
  convert(rest, last);
  std::memcpy(levels + i, last, static_cast<size_t>(n - i) * sizeof(T));
}

// NaN becomes the lower limit, as conversion instructions do.
void quantize_int(const float* values, void* out, int64_t n, Scaling s) {
  constexpr float bound = 2147483648.0f;
  const float inverse = 1.0f / s.scale;
  int32_t* levels = static_cast<int32_t*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const float level = __builtin_rintf(values[i] * inverse + s.zero_point);
    if (level >= bound)
      levels[i] = std::numeric_limits<int32_t>::max();
    else
      levels[i] =
          level >= -bound ? static_cast<int32_t>(level) : std::numeric_limits<int32_t>::min();
  }
}

template <class T> void dequantize(const void* in, float* values, int64_t n, Scaling s) {
  const T* levels = static_cast<const T*>(in);
  for (int64_t i = 0; i < n; ++i)
    values[i] = (static_cast<float>(levels[i]) - s.zero_point) * s.scale;
}

// The least and the greatest of each lane; a lane that has seen NaN keeps it in `odd`.
struct Bounds {
  Reals low{std::numeric_limits<float>::infinity()};
  Reals high{-std::numeric_limits<float>::infinity()};
  Reals odd{0.0f};

  C10_ALWAYS_INLINE void take(Reals v) {
    low = lesser(v, low);
    high = greater(v, high);
    odd = select(v == v, odd, v);
  }
  C10_ALWAYS_INLINE void take(const Bounds& other) {
    low = lesser(other.low, low);
    high = greater(other.high, high);
    odd = select(other.odd == other.odd, odd, other.odd);
  }
};

void bounds(const float* values, int64_t n, float* least, float* greatest) {
  constexpr int kChains = 4; // the comparisons of one chain wait for each other
  Bounds chains[kChains];
  int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) chains[c].take(Reals::load(values + i + c * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) chains[0].take(Reals::load(values + i));
#pragma GCC unroll 4
  for (int c = 1; c < kChains; ++c) chains[0].take(chains[c]);
  float low = std::numeric_limits<float>::infinity(), high = -low;
  bool nan = false;
  const auto one = [&](float l, float h, float odd) {
    low = l < low ? l : low;
    high = h > high ? h : high;
    nan |= odd != odd;
  };
  for (; i < n; ++i) one(values[i], values[i], values[i]);
  for (int k = 0; k < kLanes; ++k) one(chains[0].low.v[k], chains[0].high.v[k], chains[0].odd.v[k]);
  constexpr float bad = std::numeric_limits<float>::quiet_NaN();
  *least = nan ? bad : low;
  *greatest = nan ? bad : high;
}

} // namespace

void fill(Table& table) {
  table.quantize[kUnsigned8] = &quantize_small<uint8_t>;
  table.quantize[kSigned8] = &quantize_small<int8_t>;
  table.quantize[kSigned32] = &quantize_int;
  table.dequantize[kUnsigned8] = &dequantize<uint8_t>;
  table.dequantize[kSigned8] = &dequantize<int8_t>;
  table.dequantize[kSigned32] = &dequantize<int32_t>;
  table.bounds = &bounds;
}

} // namespace CRESSET_ISA
} // namespace at::quantized::levels
