// Picks the kernel table once.

#include <ATen/native/random/engine/Kernels.h>

#include <ATen/iter/CpuIsa.h>

namespace at::native::random {

const EngineKernels& engine_kernels() {
  static const EngineKernels& table = []() -> const EngineKernels& {
#if defined(__x86_64__)
    if (cpu_isa() == Isa::Avx512) return avx512::kEngineKernels;
    if (cpu_isa() == Isa::Avx2) return avx2::kEngineKernels;
#endif
    return base::kEngineKernels;
  }();
  return table;
}

} // namespace at::native::random
