// Picks the kernel table once.

#include <ATen/native/random/engine/Kernels.h>

#include <ATen/iter/CpuIsa.h>

namespace at::native::random {

const EngineKernels& engine_kernels() {
  static const EngineKernels& table = CRESSET_BY_ISA(, kEngineKernels);
  return table;
}

} // namespace at::native::random
