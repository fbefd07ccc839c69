// c10::BFloat16: the upper half of a float. Widening is a shift; narrowing rounds to nearest even
// and maps every NaN to one quiet NaN, so that a payload that lives only in the dropped bits cannot
// turn into infinity.
#pragma once

#include <c10/util/ReducedFloat.h>

namespace c10 {

struct alignas(2) BFloat16 {
  unsigned short x;

  struct from_bits_t {};
  CRESSET_NUMBER_FN static constexpr from_bits_t from_bits() { return {}; }

  BFloat16() = default;
  CRESSET_NUMBER_FN constexpr BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
  CRESSET_NUMBER_FN constexpr BFloat16(float value) : x(encode(value)) {}
  CRESSET_NUMBER_FN constexpr operator float() const {
    return detail::bits_to_float(static_cast<unsigned>(x) << 16);
  }

 private:
  CRESSET_NUMBER_FN static constexpr unsigned short encode(float value) {
    const unsigned bits = detail::float_to_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
      return 0x7fc0;
    }
    return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
};

template <> inline constexpr bool is_reduced_floating_v<BFloat16> = true;

} // namespace c10

// Programs look for std::numeric_limits of the type; without it they would read zeros.
#if !defined(CRESSET_KERNEL_TU) && !defined(__CUDACC_RTC__)
#include <c10/util/NumericLimits.h>
#endif
