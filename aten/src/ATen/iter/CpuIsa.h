// Which instruction set the run-time-selected CPU kernels use. Every *.simd.cpp file is compiled
// once per member of Isa into its own namespace; a family asks cpu_isa() once and keeps a pointer
// to the matching table, so the choice costs nothing per call.
#pragma once

#include <c10/macros/Macros.h>

namespace at {

enum class Isa { Base = 0, Avx2 = 1, Avx512 = 2 };

// The best instruction set both the machine and this build have. CRESSET_CPU_CAPABILITY, or when
// that is unset ATEN_CPU_CAPABILITY, set to "default", "avx2" or "avx512", lowers it, never raises
// it; any other value is ignored. Read once, at the first call; safe from any thread.
TORCH_API Isa cpu_isa();

// True when the machine has the AVX-512 BF16 dot product and cpu_isa() is Avx512.
TORCH_API bool cpu_has_avx512_bf16();

// "DEFAULT", "AVX2" or "AVX512", as torch.backends.cpu.get_cpu_capability() reports it.
TORCH_API const char* cpu_isa_name(Isa isa);

} // namespace at
