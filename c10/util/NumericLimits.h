// c10::numeric_limits<T>: the limits of every element type, usable on the device, where the
// standard header is absent. On the host std::numeric_limits of the reduced types is the same data.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Float8.h>
#include <c10/util/Half.h>

#if !defined(__CUDACC_RTC__)
#include <limits>
#endif

namespace c10 {

namespace detail {
template <class T> struct IntegerLimits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = true;
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr int digits = static_cast<int>(sizeof(T)) * 8 - (is_signed ? 1 : 0);
  CRESSET_HD static constexpr T max() {
    return is_signed ? static_cast<T>((1ull << (sizeof(T) * 8 - 1)) - 1) : static_cast<T>(~0ull);
  }
  CRESSET_HD static constexpr T lowest() {
    return is_signed ? static_cast<T>(-static_cast<long long>(max()) - 1) : T(0);
  }
  CRESSET_HD static constexpr T min() { return lowest(); }
  CRESSET_HD static constexpr T infinity() { return T(0); }
  CRESSET_HD static constexpr T quiet_NaN() { return T(0); }
  CRESSET_HD static constexpr T epsilon() { return T(0); }
};

// A reduced float described by the codes of its notable values; digits counts the hidden bit.
template <class T, class Bits, int kDigits, unsigned kMin, unsigned kMax, unsigned kEps,
          unsigned kNan, unsigned kInf, unsigned kDenorm>
struct ReducedLimits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_signed = true;
  static constexpr bool is_bounded = true;
  static constexpr bool has_infinity = kInf != 0;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = kDigits;
  static constexpr int radix = 2;
  CRESSET_HD static constexpr T bits(unsigned code) {
    return T(static_cast<Bits>(code), typename T::from_bits_t{});
  }
  CRESSET_HD static constexpr T min() { return bits(kMin); }
  CRESSET_HD static constexpr T max() { return bits(kMax); }
  CRESSET_HD static constexpr T lowest() { return bits(kMax | (1u << (sizeof(Bits) * 8 - 1))); }
  CRESSET_HD static constexpr T epsilon() { return bits(kEps); }
  CRESSET_HD static constexpr T quiet_NaN() { return bits(kNan); }
  CRESSET_HD static constexpr T infinity() {
    return bits(kInf);
  } // 0 where there is none, as in std
  CRESSET_HD static constexpr T denorm_min() { return bits(kDenorm); }
};
} // namespace detail

template <class T> struct numeric_limits : detail::IntegerLimits<T> {};

template <> struct numeric_limits<bool> {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = true;
  static constexpr bool is_signed = false;
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr int digits = 1;
  CRESSET_HD static constexpr bool lowest() { return false; }
  CRESSET_HD static constexpr bool min() { return false; }
  CRESSET_HD static constexpr bool max() { return true; }
};

template <> struct numeric_limits<float> {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = 24;
  CRESSET_HD static constexpr float min() { return 1.17549435082228750797e-38f; }
  CRESSET_HD static constexpr float max() { return 3.40282346638528859812e+38f; }
  CRESSET_HD static constexpr float lowest() { return -3.40282346638528859812e+38f; }
  CRESSET_HD static constexpr float epsilon() { return 1.1920928955078125e-07f; }
  CRESSET_HD static constexpr float infinity() { return __builtin_huge_valf(); }
  CRESSET_HD static constexpr float quiet_NaN() { return __builtin_nanf(""); }
  CRESSET_HD static constexpr float denorm_min() { return 1.40129846432481707092e-45f; }
};

template <> struct numeric_limits<double> {
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = 53;
  CRESSET_HD static constexpr double min() { return 2.22507385850720138309e-308; }
  CRESSET_HD static constexpr double max() { return 1.79769313486231570815e+308; }
  CRESSET_HD static constexpr double lowest() { return -1.79769313486231570815e+308; }
  CRESSET_HD static constexpr double epsilon() { return 2.220446049250313080847e-16; }
  CRESSET_HD static constexpr double infinity() { return __builtin_huge_val(); }
  CRESSET_HD static constexpr double quiet_NaN() { return __builtin_nan(""); }
  CRESSET_HD static constexpr double denorm_min() { return 4.94065645841246544177e-324; }
};

template <> struct numeric_limits<Half>
    : detail::ReducedLimits<Half, unsigned short, 11, 0x0400, 0x7bff, 0x1400, 0x7e00, 0x7c00, 1> {};
template <> struct numeric_limits<BFloat16>
    : detail::ReducedLimits<BFloat16, unsigned short, 8, 0x0080, 0x7f7f, 0x3c00, 0x7fc0, 0x7f80,
                            1> {};
template <> struct numeric_limits<Float8_e4m3fn>
    : detail::ReducedLimits<Float8_e4m3fn, unsigned char, 4, 0x08, 0x7e, 0x20, 0x7f, 0, 1> {};
template <> struct numeric_limits<Float8_e5m2>
    : detail::ReducedLimits<Float8_e5m2, unsigned char, 3, 0x04, 0x7b, 0x34, 0x7f, 0x7c, 1> {};
template <> struct numeric_limits<Float8_e4m3fnuz>
    : detail::ReducedLimits<Float8_e4m3fnuz, unsigned char, 4, 0x08, 0x7f, 0x28, 0x80, 0, 1> {};
template <> struct numeric_limits<Float8_e5m2fnuz>
    : detail::ReducedLimits<Float8_e5m2fnuz, unsigned char, 3, 0x04, 0x7f, 0x34, 0x80, 0, 1> {};

} // namespace c10

#if !defined(__CUDACC_RTC__)
namespace c10::detail {

// What the standard header says of a binary floating-point type besides. The exponents are those of
// the least normal number and of the greatest, as C counts them: of 0.5 <= fraction < 1.
template <class T, int kMinExponent, int kMaxExponent> struct StandardLimits
    : c10::numeric_limits<T> {
 private:
  using Base = c10::numeric_limits<T>;
  // Decimal digits of binary ones: log10(2) is 0.30103.
  static constexpr int decimal(int n) { return static_cast<int>(n * 30103LL / 100000); }

 public:
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool is_iec559 = Base::has_infinity;
  static constexpr bool has_signaling_NaN = Base::has_infinity;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr int digits10 = decimal(Base::digits - 1);
  static constexpr int max_digits10 = decimal(Base::digits) + 2;
  static constexpr int min_exponent = kMinExponent;
  static constexpr int max_exponent = kMaxExponent;
  static constexpr int min_exponent10 = decimal(kMinExponent - 1);
  static constexpr int max_exponent10 = decimal(kMaxExponent);
  static constexpr T round_error() { return T(0.5f); }
  // Its first bit of the fraction is clear, the second set.
  static constexpr T signaling_NaN() {
    if (!has_signaling_NaN) return T(0.0f);
    const unsigned nan = Base::quiet_NaN().x, infinity = Base::infinity().x;
    return Base::bits(infinity | (nan ^ infinity) >> 1);
  }
};

} // namespace c10::detail

namespace std {
template <> class numeric_limits<c10::Half>
    : public c10::detail::StandardLimits<c10::Half, -13, 16> {};
template <> class numeric_limits<c10::BFloat16>
    : public c10::detail::StandardLimits<c10::BFloat16, -125, 128> {};
template <> class numeric_limits<c10::Float8_e4m3fn>
    : public c10::detail::StandardLimits<c10::Float8_e4m3fn, -5, 9> {};
template <> class numeric_limits<c10::Float8_e5m2>
    : public c10::detail::StandardLimits<c10::Float8_e5m2, -13, 16> {};
template <> class numeric_limits<c10::Float8_e4m3fnuz>
    : public c10::detail::StandardLimits<c10::Float8_e4m3fnuz, -6, 8> {};
template <> class numeric_limits<c10::Float8_e5m2fnuz>
    : public c10::detail::StandardLimits<c10::Float8_e5m2fnuz, -14, 16> {};
} // namespace std
#endif
