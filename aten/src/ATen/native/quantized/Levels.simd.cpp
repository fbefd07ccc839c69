// Plain loops that the compiler turns into registers of any width, which it does for loops of any
// length only when asked; compiled without contraction of products and sums, which would change how
// ties round. See Levels.h.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("vect-cost-model=dynamic")
#endif
#include <ATen/native/quantized/Levels.h>

#include <cmath>
#include <limits>

namespace at::quantized::levels {
namespace CRESSET_ISA {
namespace {

// Written so that NaN becomes the upper limit.
template <class T> void quantize_small(const float* values, void* out, int64_t n, Scaling s) {
  constexpr float low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const float inverse = 1.0f / s.scale;
  T* levels = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    float level = __builtin_rintf(values[i] * inverse + s.zero_point);
    level = level < low ? low : level;
    level = level < high ? level : high;
    levels[i] = static_cast<T>(static_cast<int32_t>(level));
  }
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

void bounds(const float* values, int64_t n, float* least, float* greatest) {
  constexpr int kLanes = 32;
  float low[kLanes], high[kLanes], odd[kLanes]; // odd: 1 where a lane has seen NaN
  for (int k = 0; k < kLanes; ++k) {
    odd[k] = 0;
    low[k] = std::numeric_limits<float>::infinity();
    high[k] = -std::numeric_limits<float>::infinity();
  }
  int64_t i = 0;
  bool nan = false;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const float v = values[i + k];
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
      odd[k] = v != v ? 1.0f : odd[k];
    }
  }
  for (int k = 0; k < kLanes; ++k) nan |= odd[k] != 0;
  for (; i < n; ++i) {
    const float v = values[i];
    low[0] = v < low[0] ? v : low[0];
    high[0] = v > high[0] ? v : high[0];
    nan |= v != v;
  }
  for (int k = 1; k < kLanes; ++k) {
    low[0] = low[k] < low[0] ? low[k] : low[0];
    high[0] = high[k] > high[0] ? high[k] : high[0];
  }
  constexpr float bad = std::numeric_limits<float>::quiet_NaN();
  *least = nan ? bad : low[0];
  *greatest = nan ? bad : high[0];
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
