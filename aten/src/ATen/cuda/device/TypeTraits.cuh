// The few names of <type_traits> and <cstdint> that device code uses, for the run-time compiler,
// which has no standard headers. Other compilers get the real ones. The run-time include step
// serves `#include <type_traits>`, `<cstdint>`, `<cstddef>` and `<utility>` with this file.
#pragma once

#if !defined(__CUDACC_RTC__) || defined(CRESSET_EMULATOR)
#include <cstdint>
#include <type_traits>
#include <utility>
#else

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;

// What other compilers know by themselves.
#define __builtin_memcpy memcpy
#define __builtin_huge_valf() __builtin_bit_cast(float, 0x7f800000)
#define __builtin_nanf(text) __builtin_bit_cast(float, 0x7fc00000)
#define __builtin_huge_val() __builtin_bit_cast(double, 0x7ff0000000000000ll)
#define __builtin_nan(text) __builtin_bit_cast(double, 0x7ff8000000000000ll)

namespace std {

template <class T, T kValue> struct integral_constant { static constexpr T value = kValue; };
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;

template <class A, class B> inline constexpr bool is_same_v = false;
template <class A> inline constexpr bool is_same_v<A, A> = true;

template <bool kCondition, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool kCondition, class A, class B> using conditional_t =
    typename conditional<kCondition, A, B>::type;

template <bool kCondition, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool kCondition, class T = void> using enable_if_t =
    typename enable_if<kCondition, T>::type;

template <class...> using void_t = void;

template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<const T> { using type = T; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct remove_reference { using type = T; };
template <class T> struct remove_reference<T&> { using type = T; };
template <class T> struct remove_reference<T&&> { using type = T; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;

template <class T> inline constexpr bool is_floating_point_v =
    is_same_v<T, float> || is_same_v<T, double>;
template <class T> inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, char> || is_same_v<T, signed char> ||
    is_same_v<T, unsigned char> || is_same_v<T, short> || is_same_v<T, unsigned short> ||
    is_same_v<T, int> || is_same_v<T, unsigned> || is_same_v<T, long> ||
    is_same_v<T, unsigned long> || is_same_v<T, long long> || is_same_v<T, unsigned long long>;
template <class T> inline constexpr bool is_signed_v =
    (is_integral_v<T> && !is_same_v<T, bool> && T(-1) < T(0)) || is_floating_point_v<T>;
template <class T> inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;

template <class T> struct make_unsigned { using type = T; };
template <> struct make_unsigned<char> { using type = unsigned char; };
template <> struct make_unsigned<signed char> { using type = unsigned char; };
template <> struct make_unsigned<short> { using type = unsigned short; };
template <> struct make_unsigned<int> { using type = unsigned; };
template <> struct make_unsigned<long> { using type = unsigned long; };
template <> struct make_unsigned<long long> { using type = unsigned long long; };
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;

template <class T, T... kValues> struct integer_sequence {};
template <size_t... kValues> using index_sequence = integer_sequence<size_t, kValues...>;
template <size_t kN, size_t... kValues> struct make_index : make_index<kN - 1, kN - 1, kValues...> {
};
template <size_t... kValues> struct make_index<0, kValues...> {
  using type = index_sequence<kValues...>;
};
template <size_t kN> using make_index_sequence = typename make_index<kN>::type;

} // namespace std
#endif
