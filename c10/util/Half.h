// c10::Half, the IEEE 754 binary16 number: 16 bits of storage that convert to and from float
// implicitly and compute in float. Conversions use F16C or the GPU's instruction where the
// compiler may, and portable bit code elsewhere; all three round to nearest even.
#pragma once

#include <c10/util/ReducedFloat.h>

namespace c10 {

struct alignas(2) Half {
  unsigned short x;

  struct from_bits_t {};
  CRESSET_NUMBER_FN static constexpr from_bits_t from_bits() { return {}; }

  Half() = default;
  CRESSET_NUMBER_FN constexpr Half(unsigned short bits, from_bits_t) : x(bits) {}
  CRESSET_NUMBER_FN constexpr Half(float value) : x(encode(value)) {}
  CRESSET_NUMBER_FN constexpr operator float() const { return decode(x); }

 private:
  using Format = detail::FloatFormat<5, 10, 15, detail::SpecialCodes::Ieee>;

  CRESSET_NUMBER_FN static constexpr unsigned short encode(float value) {
#if defined(__CUDA_ARCH__)
    unsigned short bits = 0;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
#if defined(__F16C__)
    if (!__builtin_is_constant_evaluated()) {
      return encode_f16c(value);
    }
#endif
    return static_cast<unsigned short>(Format::encode(value));
#endif
  }

  CRESSET_NUMBER_FN static constexpr float decode(unsigned short bits) {
#if defined(__CUDA_ARCH__)
    float value = 0;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
#if defined(__F16C__)
    if (!__builtin_is_constant_evaluated()) {
      return decode_f16c(bits);
    }
#endif
    return Format::decode(bits);
#endif
  }

#if defined(__F16C__) && !defined(__CUDA_ARCH__)
  CRESSET_NUMBER_FN static unsigned short encode_f16c(float value) {
    typedef float V4 __attribute__((vector_size(16)));
    return static_cast<unsigned short>(__builtin_ia32_vcvtps2ph(V4{value, 0, 0, 0}, 0)[0]);
  }
  CRESSET_NUMBER_FN static float decode_f16c(unsigned short bits) {
    typedef short V8 __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps(V8{static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0})[0];
  }
#endif
};

template <> inline constexpr bool is_reduced_floating_v<Half> = true;

} // namespace c10

// Programs look for std::numeric_limits of the type; without it they would read zeros.
#if !defined(CRESSET_KERNEL_TU) && !defined(__CUDACC_RTC__)
#include <c10/util/NumericLimits.h>
#endif
