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

// `member` of the namespace that *.simd.cpp files were compiled into for this machine; `space` is
// what stands before that namespace, `cast::` or nothing. A function or a table of any type.
#ifdef CRESSET_HAVE_X86_ISA
#define CRESSET_BY_ISA(space, member)                                                              \
  (::at::cpu_isa() == ::at::Isa::Avx512 ? space avx512::member                                     \
   : ::at::cpu_isa() == ::at::Isa::Avx2 ? space avx2::member                                       \
                                        : space base::member)
#else
#define CRESSET_BY_ISA(space, member) (space base::member)
#endif
