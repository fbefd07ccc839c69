// Detection of the instruction set, done once. Only whole levels are told apart (AVX2 means
// AVX2+FMA+F16C, AVX512 means x86-64-v4), because kernels are compiled per level, not per flag.
#include <ATen/iter/CpuIsa.h>

#include <cstdlib>
#include <cstring>

namespace at {
namespace {

Isa machine_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) {
    return Isa::Avx512;
  }
  if (avx2) {
    return Isa::Avx2;
  }
#endif
  return Isa::Base;
}

Isa requested_isa() {
  const char* text = std::getenv("CRESSET_CPU_CAPABILITY");
  if (text == nullptr) {
    text = std::getenv("ATEN_CPU_CAPABILITY");
  }
  if (text == nullptr) {
    return Isa::Avx512;
  }
  if (std::strcmp(text, "default") == 0) {
    return Isa::Base;
  }
  return std::strcmp(text, "avx2") == 0 ? Isa::Avx2 : Isa::Avx512;
}

Isa detect_isa() {
  const Isa machine = machine_isa();
  const Isa requested = requested_isa();
  return requested < machine ? requested : machine;
}

} // namespace

Isa cpu_isa() {
  static const Isa isa = detect_isa();
  return isa;
}

bool cpu_has_avx512_bf16() {
#if defined(__x86_64__)
  return cpu_isa() == Isa::Avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

const char* cpu_isa_name(Isa isa) {
  switch (isa) {
  case Isa::Avx512:
    return "AVX512";
  case Isa::Avx2:
    return "AVX2";
  case Isa::Base:
    break;
  }
  return "DEFAULT";
}

} // namespace at
