// Absolute value, angle and conjugate of c10::complex under the names of the standard library.
#pragma once
#include <cmath>

#include <c10/util/complex.h>

namespace std {
template <class T> T abs(const c10::complex<T>& z) { return std::hypot(z.real_, z.imag_); }
template <class T> T arg(const c10::complex<T>& z) { return std::atan2(z.imag_, z.real_); }
template <class T> constexpr T norm(const c10::complex<T>& z) {
  return z.real_ * z.real_ + z.imag_ * z.imag_;
}
template <class T> constexpr c10::complex<T> conj(const c10::complex<T>& z) {
  return {z.real_, -z.imag_};
}
template <class T> constexpr T real(const c10::complex<T>& z) { return z.real_; }
template <class T> constexpr T imag(const c10::complex<T>& z) { return z.imag_; }
} // namespace std
