// Mathematical constants, one name per number, as templates over the type that needs them.
#pragma once

namespace c10 {

template <class T> inline constexpr T pi = static_cast<T>(3.141592653589793238462643383279502884);
template <class T> inline constexpr T e = static_cast<T>(2.718281828459045235360287471352662498);
template <class T>
inline constexpr T euler = static_cast<T>(0.577215664901532860606512090082402431);
template <class T> inline constexpr T ln_2 = static_cast<T>(0.693147180559945309417232121458176568);
template <class T>
inline constexpr T ln_10 = static_cast<T>(2.302585092994045684017991454684364208);
template <class T>
inline constexpr T log2_e = static_cast<T>(1.442695040888963407359924681001892137);
template <class T>
inline constexpr T log10_e = static_cast<T>(0.434294481903251827651128918916605082);
template <class T>
inline constexpr T sqrt_2 = static_cast<T>(1.414213562373095048801688724209698079);
template <class T>
inline constexpr T frac_sqrt_2 = static_cast<T>(0.707106781186547524400844362104849039);
template <class T>
inline constexpr T frac_1_pi = static_cast<T>(0.318309886183790671537767526745028724);
template <class T>
inline constexpr T frac_2_sqrt_pi = static_cast<T>(1.128379167095512573896158903121545172);

} // namespace c10
