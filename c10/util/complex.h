// c10::complex<T>, the complex number of every layer. It is its own type, not std::complex, because
// it must exist for Half, compile for the device without headers, and give one defined result for
// division of extreme values on every machine. Its alignment is its part's, because buffers that
// come from outside promise no more.
#pragma once

#include <c10/util/Half.h>

namespace c10 {

template <class T> struct complex {
  using value_type = T;

  T real_;
  T imag_;

  complex() = default;
  CRESSET_NUMBER_FN constexpr complex(T re) : real_(re), imag_(T(0.0f)) {}
  CRESSET_NUMBER_FN constexpr complex(T re, T im) : real_(re), imag_(im) {}
  // Between precisions: widening and narrowing are both implicit, as for the real types.
  template <class U> CRESSET_NUMBER_FN constexpr complex(const complex<U>& other)
      : real_(static_cast<T>(other.real_)), imag_(static_cast<T>(other.imag_)) {}

  CRESSET_NUMBER_FN constexpr T real() const { return real_; }
  CRESSET_NUMBER_FN constexpr T imag() const { return imag_; }
  CRESSET_NUMBER_FN constexpr void real(T value) { real_ = value; }
  CRESSET_NUMBER_FN constexpr void imag(T value) { imag_ = value; }

  CRESSET_NUMBER_FN constexpr complex& operator+=(complex o) { return *this = *this + o; }
  CRESSET_NUMBER_FN constexpr complex& operator-=(complex o) { return *this = *this - o; }
  CRESSET_NUMBER_FN constexpr complex& operator*=(complex o) { return *this = *this * o; }
  CRESSET_NUMBER_FN constexpr complex& operator/=(complex o) { return *this = *this / o; }

  CRESSET_NUMBER_FN friend constexpr complex operator+(complex a) { return a; }
  CRESSET_NUMBER_FN friend constexpr complex operator-(complex a) { return {-a.real_, -a.imag_}; }
  CRESSET_NUMBER_FN friend constexpr complex operator+(complex a, complex b) {
    return {a.real_ + b.real_, a.imag_ + b.imag_};
  }
  CRESSET_NUMBER_FN friend constexpr complex operator-(complex a, complex b) {
    return {a.real_ - b.real_, a.imag_ - b.imag_};
  }
  CRESSET_NUMBER_FN friend constexpr complex operator*(complex a, complex b) {
    return {a.real_ * b.real_ - a.imag_ * b.imag_, a.real_ * b.imag_ + a.imag_ * b.real_};
  }
  // Smith's division: dividing through by the larger part of b keeps every intermediate in range.
  CRESSET_NUMBER_FN friend constexpr complex operator/(complex a, complex b) {
    const T size_re = b.real_ < T(0.0f) ? -b.real_ : b.real_;
    const T size_im = b.imag_ < T(0.0f) ? -b.imag_ : b.imag_;
    if (size_re >= size_im) {
      if (size_re == T(0.0f) && size_im == T(0.0f)) {
        return {a.real_ / size_re, a.imag_ / size_im}; // infinities and NaNs, part by part
      }
      const T ratio = b.imag_ / b.real_;
      const T scale = T(1.0f) / (b.real_ + b.imag_ * ratio);
      return {(a.real_ + a.imag_ * ratio) * scale, (a.imag_ - a.real_ * ratio) * scale};
    }
    const T ratio = b.real_ / b.imag_;
    const T scale = T(1.0f) / (b.real_ * ratio + b.imag_);
    return {(a.real_ * ratio + a.imag_) * scale, (a.imag_ * ratio - a.real_) * scale};
  }
  CRESSET_NUMBER_FN friend constexpr bool operator==(complex a, complex b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  CRESSET_NUMBER_FN friend constexpr bool operator!=(complex a, complex b) { return !(a == b); }
};

template <class T> inline constexpr bool is_complex_v = false;
template <class T> inline constexpr bool is_complex_v<complex<T>> = true;

// The real type of T: value_type of a complex number, T itself otherwise.
template <class T> struct real_type { using type = T; };
template <class T> struct real_type<complex<T>> { using type = T; };
template <class T> using real_type_t = typename real_type<T>::type;

} // namespace c10
