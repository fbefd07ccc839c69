// The 8-bit floating types. They are storage formats for quantised data: conversions and the shared
// operators (through float) are all they offer. "fn" has no infinity, "uz" no negative zero; out of
// range becomes infinity in e5m2, the largest number in e4m3fn and NaN in the "uz" formats.
#pragma once

#include <c10/util/ReducedFloat.h>

namespace c10 {

namespace detail {
template <class Format> struct alignas(1) Float8Base {
  unsigned char x;

  struct from_bits_t {};
  CRESSET_NUMBER_FN static constexpr from_bits_t from_bits() { return {}; }

  Float8Base() = default;
  CRESSET_NUMBER_FN constexpr Float8Base(unsigned char bits, from_bits_t) : x(bits) {}
  CRESSET_NUMBER_FN constexpr Float8Base(float value)
      : x(static_cast<unsigned char>(Format::encode(value))) {}
  CRESSET_NUMBER_FN constexpr operator float() const { return Format::decode(x); }
};
} // namespace detail

struct Float8_e4m3fn
    : detail::Float8Base<detail::FloatFormat<4, 3, 7, detail::SpecialCodes::FiniteNan>> {
  using Float8Base::Float8Base;
  Float8_e4m3fn() = default;
};
struct Float8_e5m2 : detail::Float8Base<detail::FloatFormat<5, 2, 15, detail::SpecialCodes::Ieee>> {
  using Float8Base::Float8Base;
  Float8_e5m2() = default;
};
struct Float8_e4m3fnuz
    : detail::Float8Base<detail::FloatFormat<4, 3, 8, detail::SpecialCodes::UnsignedZero>> {
  using Float8Base::Float8Base;
  Float8_e4m3fnuz() = default;
};
struct Float8_e5m2fnuz
    : detail::Float8Base<detail::FloatFormat<5, 2, 16, detail::SpecialCodes::UnsignedZero>> {
  using Float8Base::Float8Base;
  Float8_e5m2fnuz() = default;
};

// The shared scale of a block of quantised values: an exponent and nothing else, 2^(x - 127).
struct alignas(1) Float8_e8m0fnu {
  unsigned char x;

  struct from_bits_t {};
  CRESSET_NUMBER_FN static constexpr from_bits_t from_bits() { return {}; }

  Float8_e8m0fnu() = default;
  CRESSET_NUMBER_FN constexpr Float8_e8m0fnu(unsigned char bits, from_bits_t) : x(bits) {}
  CRESSET_NUMBER_FN constexpr Float8_e8m0fnu(float value) : x(encode(value)) {}
  CRESSET_NUMBER_FN constexpr operator float() const {
    return x == 255 ? detail::bits_to_float(0x7fc00000u)
           : x == 0 ? detail::bits_to_float(0x00400000u)
                    : detail::bits_to_float(static_cast<unsigned>(x) << 23);
  }

 private:
  // Nearest power of two, ties to the even exponent code's side as float's own rounding would give.
  CRESSET_NUMBER_FN static constexpr unsigned char encode(float value) {
    const unsigned bits = detail::float_to_bits(value);
    const unsigned exponent = (bits >> 23) & 0xffu;
    if (exponent == 0xffu) {
      return 0xff;
    }
    const unsigned mantissa = bits & 0x7fffffu;
    const bool up = mantissa > 0x400000u || (mantissa == 0x400000u && exponent > 0);
    return static_cast<unsigned char>(exponent + (up ? 1u : 0u));
  }
};

template <> inline constexpr bool is_reduced_floating_v<Float8_e4m3fn> = true;
template <> inline constexpr bool is_reduced_floating_v<Float8_e5m2> = true;
template <> inline constexpr bool is_reduced_floating_v<Float8_e4m3fnuz> = true;
template <> inline constexpr bool is_reduced_floating_v<Float8_e5m2fnuz> = true;
template <> inline constexpr bool is_reduced_floating_v<Float8_e8m0fnu> = true;

} // namespace c10

// Programs look for std::numeric_limits of the type; without it they would read zeros.
#if !defined(CRESSET_KERNEL_TU) && !defined(__CUDACC_RTC__)
#include <c10/util/NumericLimits.h>
#endif
