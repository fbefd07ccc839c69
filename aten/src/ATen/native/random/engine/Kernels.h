#pragma once

// The vector loops under the random fills, one table per instruction set.

#include <cstdint>

namespace at::native::random {

struct EngineKernels {
  /// Renews the 624 words of an MT19937 state.
  void (*twist)(uint32_t* state);
  /// Output function of MT19937 on n words.
  void (*temper)(const uint32_t* state, uint32_t* out, int64_t n);
  /// fma(24 bits of raw[i], range, from)
  void (*uniform_f32)(const uint32_t* raw, float* out, int64_t n, float range, float from);
  /// fma(53 bits of the pair raw[2 i], raw[2 i + 1], range, from)
  void (*uniform_f64)(const uint32_t* raw, double* out, int64_t n, double range, double from);
  /// In place, n a multiple of 16: uniforms in [0, 1) become normals. In each block of 16, elements
  /// j and j + 8 make a pair.
  void (*normal_f32)(float* data, int64_t n, float mean, float std);
};

namespace base {
extern const EngineKernels kEngineKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const EngineKernels kEngineKernels;
}
namespace avx512 {
extern const EngineKernels kEngineKernels;
}
#endif

/// The table for this machine.
const EngineKernels& engine_kernels();

} // namespace at::native::random
