// What the 16-bit and 8-bit floating types have in common: one constexpr encoder and decoder for
// any (exponent, mantissa) split, and the operators. A reduced float is storage; every operation
// widens to float, computes there and rounds once. The header includes nothing outside the macros,
// so that the same text compiles for the device at run time.
#pragma once

#include <c10/macros/Macros.h>

// Kernel files are compiled several times for different instruction sets while these types keep one
// name. Were an operation emitted out of line, the linker could keep the copy made for the newest
// machine; so all of them are inlined, always.
#define CRESSET_NUMBER_FN CRESSET_HD __attribute__((always_inline))

namespace c10 {

// Specialised to true by each reduced type's header; gates the shared operators below.
template <class T> inline constexpr bool is_reduced_floating_v = false;

namespace detail {

CRESSET_NUMBER_FN constexpr unsigned float_to_bits(float f) {
  return __builtin_bit_cast(unsigned, f);
}
CRESSET_NUMBER_FN constexpr float bits_to_float(unsigned u) { return __builtin_bit_cast(float, u); }

// How a format spends its topmost codes.
enum class SpecialCodes {
  Ieee,        // all-ones exponent: mantissa 0 is infinity, else NaN
  FiniteNan,   // "fn": no infinity, NaN only where exponent and mantissa are all ones
  UnsignedZero // "fnuz": no infinity, no negative zero, the code of -0 is the one NaN
};

template <int kExp, int kMant, int kBias, SpecialCodes kSpecial> struct FloatFormat {
  static constexpr unsigned kSign = 1u << (kExp + kMant);
  static constexpr unsigned kMantMask = (1u << kMant) - 1;
  static constexpr unsigned kExpMask = (1u << kExp) - 1;
  static constexpr unsigned kInf = kExpMask << kMant;
  static constexpr unsigned kMaxFinite = kSpecial == SpecialCodes::Ieee        ? kInf - 1
                                         : kSpecial == SpecialCodes::FiniteNan ? kSign - 2
                                                                               : kSign - 1;

  CRESSET_NUMBER_FN static constexpr unsigned nan_code(unsigned sign) {
    return kSpecial == SpecialCodes::Ieee        ? sign | kInf | (1u << (kMant - 1))
           : kSpecial == SpecialCodes::FiniteNan ? sign | (kSign - 1)
                                                 : kSign;
  }

  // Round to nearest, ties to even. Too large becomes infinity where there is one; "fn" saturates
  // to its largest finite number and "fnuz" gives NaN, as PyTorch does.
  CRESSET_NUMBER_FN static constexpr unsigned encode(float value) {
    const unsigned bits = float_to_bits(value);
    const unsigned sign = (bits >> 31) ? kSign : 0u;
    const unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      return nan_code(sign);
    }
    constexpr int kMinNormalExp = 128 - kBias; // biased float exponent of the smallest normal
    const int exponent = static_cast<int>(magnitude >> 23);
    unsigned code = 0;
    if (exponent >= kMinNormalExp) {
      constexpr int kDrop = 23 - kMant;
      const unsigned rebased = magnitude - (static_cast<unsigned>(kMinNormalExp - 1) << 23);
      code = (rebased + ((1u << (kDrop - 1)) - 1) + ((rebased >> kDrop) & 1u)) >> kDrop;
    } else {
      const unsigned significand = (magnitude & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0u);
      const int drop = 23 - kMant + kMinNormalExp - (exponent != 0 ? exponent : 1);
      if (drop < 26) { // beyond that even the largest significand rounds to zero
        const unsigned half = (1u << (drop - 1)) - 1;
        code = (significand + half + ((significand >> drop) & 1u)) >> drop;
      }
    }
    if (code > kMaxFinite) {
      return kSpecial == SpecialCodes::Ieee        ? sign | kInf
             : kSpecial == SpecialCodes::FiniteNan ? sign | kMaxFinite
                                                   : nan_code(sign);
    }
    if (kSpecial == SpecialCodes::UnsignedZero && code == 0) {
      return 0;
    }
    return sign | code;
  }

  CRESSET_NUMBER_FN static constexpr float decode(unsigned code) {
    const unsigned sign = (code & kSign) ? 0x80000000u : 0u;
    const unsigned magnitude = code & (kSign - 1);
    const unsigned mantissa = magnitude & kMantMask;
    const int exponent = static_cast<int>(magnitude >> kMant);
    if (kSpecial == SpecialCodes::UnsignedZero && code == kSign) {
      return bits_to_float(0x7fc00000u);
    }
    if (kSpecial == SpecialCodes::FiniteNan && magnitude == kSign - 1) {
      return bits_to_float(sign | 0x7fc00000u);
    }
    if (kSpecial == SpecialCodes::Ieee && magnitude >= kInf) {
      const unsigned quiet = mantissa != 0 ? 0x400000u : 0u;
      return bits_to_float(sign | 0x7f800000u | quiet | (mantissa << (23 - kMant)));
    }
    if (exponent == 0) {
      // A subnormal is mantissa * 2^(1 - bias - mantissa bits), exact in float.
      constexpr float kUnit =
          __builtin_bit_cast(float, static_cast<unsigned>(128 - kBias - kMant) << 23);
      const float value = static_cast<float>(mantissa) * kUnit;
      return sign ? -value : value;
    }
    return bits_to_float(sign | (static_cast<unsigned>(exponent + 127 - kBias) << 23) |
                         (mantissa << (23 - kMant)));
  }
};

template <bool kCondition> struct EnableInt {};
template <> struct EnableInt<true> { using type = int; };
template <class T> using if_reduced = typename EnableInt<is_reduced_floating_v<T>>::type;

template <class T> inline constexpr bool is_builtin_int_v = false;
template <> inline constexpr bool is_builtin_int_v<int> = true;
template <> inline constexpr bool is_builtin_int_v<long> = true;
template <> inline constexpr bool is_builtin_int_v<long long> = true;
template <class T, class I> using if_reduced_and_int =
    typename EnableInt<is_reduced_floating_v<T> && is_builtin_int_v<I>>::type;

} // namespace detail

// Mixed with float or double the built-in operators apply through the implicit conversion and give
// float or double; with an integer the result stays reduced. Comparisons are the built-in ones.
template <class T, detail::if_reduced<T> = 0> CRESSET_NUMBER_FN constexpr T operator+(T a, T b) {
  return T(static_cast<float>(a) + static_cast<float>(b));
}
template <class T, detail::if_reduced<T> = 0> CRESSET_NUMBER_FN constexpr T operator-(T a, T b) {
  return T(static_cast<float>(a) - static_cast<float>(b));
}
template <class T, detail::if_reduced<T> = 0> CRESSET_NUMBER_FN constexpr T operator*(T a, T b) {
  return T(static_cast<float>(a) * static_cast<float>(b));
}
template <class T, detail::if_reduced<T> = 0> CRESSET_NUMBER_FN constexpr T operator/(T a, T b) {
  return T(static_cast<float>(a) / static_cast<float>(b));
}
template <class T, detail::if_reduced<T> = 0> CRESSET_NUMBER_FN constexpr T operator-(T a) {
  return T(-static_cast<float>(a));
}
template <class T, detail::if_reduced<T> = 0>
CRESSET_NUMBER_FN constexpr T& operator+=(T& a, float b) {
  return a = T(static_cast<float>(a) + b);
}
template <class T, detail::if_reduced<T> = 0>
CRESSET_NUMBER_FN constexpr T& operator-=(T& a, float b) {
  return a = T(static_cast<float>(a) - b);
}
template <class T, detail::if_reduced<T> = 0>
CRESSET_NUMBER_FN constexpr T& operator*=(T& a, float b) {
  return a = T(static_cast<float>(a) * b);
}
template <class T, detail::if_reduced<T> = 0>
CRESSET_NUMBER_FN constexpr T& operator/=(T& a, float b) {
  return a = T(static_cast<float>(a) / b);
}

template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator+(T a, I b) {
  return a + static_cast<T>(b);
}
template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator+(I a, T b) {
  return static_cast<T>(a) + b;
}
template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator-(T a, I b) {
  return a - static_cast<T>(b);
}
template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator-(I a, T b) {
  return static_cast<T>(a) - b;
}
template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator*(T a, I b) {
  return a * static_cast<T>(b);
}
template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator*(I a, T b) {
  return static_cast<T>(a) * b;
}
template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator/(T a, I b) {
  return a / static_cast<T>(b);
}
template <class T, class I, detail::if_reduced_and_int<T, I> = 0>
CRESSET_NUMBER_FN constexpr T operator/(I a, T b) {
  return static_cast<T>(a) / b;
}

} // namespace c10
