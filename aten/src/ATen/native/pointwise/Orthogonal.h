// Orthogonal polynomials p_n(x) by their three-term recurrences. n arrives as a number of the
// loop's type and is truncated; a negative degree gives 0. Inside [-1, 1] the Chebyshev families
// have a closed form, which keeps large degrees cheap and exact; elsewhere a recurrence stops as
// soon as the value has overflowed.
#pragma once

#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

// A family: p_0 = 1, p_1 = first(x), p_(k+1) = next(x, k, p_k, p_(k-1)); where it has one, the
// closed form in the angle whose cosine is x.
struct HermiteH {
  static constexpr bool kClosed = false;
  template <class D> CRESSET_FN D first(D x) { return x + x; }
  template <class D> CRESSET_FN D next(D x, double k, D p, D q) {
    return D(2.0) * x * p - D(2 * k) * q;
  }
};
struct HermiteHe {
  static constexpr bool kClosed = false;
  template <class D> CRESSET_FN D first(D x) { return x; }
  template <class D> CRESSET_FN D next(D x, double k, D p, D q) { return x * p - D(k) * q; }
};
struct LaguerreL {
  static constexpr bool kClosed = false;
  template <class D> CRESSET_FN D first(D x) { return D(1.0) - x; }
  template <class D> CRESSET_FN D next(D x, double k, D p, D q) {
    return ((D(2 * k + 1) - x) * p - D(k) * q) / D(k + 1);
  }
};
struct LegendreP {
  static constexpr bool kClosed = false;
  template <class D> CRESSET_FN D first(D x) { return x; }
  template <class D> CRESSET_FN D next(D x, double k, D p, D q) {
    return (D(2 * k + 1) * x * p - D(k) * q) / D(k + 1);
  }
};
struct Chebyshev {
  static constexpr bool kClosed = true;
  template <class D> CRESSET_FN D next(D x, double, D p, D q) { return D(2.0) * x * p - q; }
};
struct ChebyshevT : Chebyshev {
  template <class D> CRESSET_FN D first(D x) { return x; }
  CRESSET_FN double closed(double angle, double n) { return vm::cos(n * angle); }
};
struct ChebyshevU : Chebyshev {
  template <class D> CRESSET_FN D first(D x) { return x + x; }
  CRESSET_FN double closed(double angle, double n) {
    return vm::sin((n + 1) * angle) / vm::sin(angle);
  }
};
struct ChebyshevV : Chebyshev {
  template <class D> CRESSET_FN D first(D x) { return x + x - D(1.0); }
  CRESSET_FN double closed(double angle, double n) {
    return vm::cos((n + 0.5) * angle) / vm::cos(angle / 2);
  }
};
struct ChebyshevW : Chebyshev {
  template <class D> CRESSET_FN D first(D x) { return x + x + D(1.0); }
  CRESSET_FN double closed(double angle, double n) {
    return vm::sin((n + 0.5) * angle) / vm::sin(angle / 2);
  }
};

// p_n(x) for n >= 1. A value that has overflowed stays.
template <class Family, class D> CRESSET_FN D recur(D x, long n) {
  D before(1.0), now = Family::first(x);
  for (long k = 1; k < n; ++k) {
    const auto alive = vm::isfinite(now);
    if (!vm::reg::any(alive)) break;
    const D next = Family::next(x, static_cast<double>(k), now, before);
    before = vm::select(alive, now, before);
    now = vm::select(alive, next, now);
  }
  return now;
}

template <class Family> CRESSET_FN double polynomial_at(double x, double degree) {
  constexpr double kLongest =
      1e7; // a longer recurrence would look like a hang, and has no digits left
  const double n = vm::trunc(degree);
  if constexpr (Family::kClosed) {
    // Near the ends the angle itself loses digits, which only pays for degrees too long to count
    // to.
    if (n > 8 && (vm::abs(x) < 0.999 || (n > 1000 && vm::abs(x) < 1)))
      return Family::closed(vm::acos(x), n);
  }
  if (!(n >= 1)) return n > -1 ? 1 : vm::isnan(n) ? n : 0;
  return n > kLongest ? kNan : recur<Family>(x, static_cast<long>(n));
}

} // namespace CRESSET_ISA
} // namespace at::native::special

namespace at::native::fn {
inline namespace CRESSET_ISA {

namespace detail {
// A functor over one of the families; kShifted evaluates at 2x - 1. A degree that all lanes share,
// and that needs no closed form, is counted to once for the register.
template <class Family, bool kShifted = false> struct Polynomial {
  static constexpr bool kVectorizeIntegers = false;
  template <class V> CRESSET_FN V apply(V x, V n) {
    if constexpr (!vm::is_vec_v<V>) {
      return static_cast<V>(one(static_cast<double>(x), static_cast<double>(n)));
    } else if constexpr (sizeof(vm::element_t<V>) == sizeof(float)) {
      return in_double(x, n, [](auto a, auto b) { return wide(a, b); });
    } else {
      return wide(x, n);
    }
  }

 private:
  CRESSET_FN double one(double x, double n) {
    return special::polynomial_at<Family>(kShifted ? 2 * x - 1 : x, n);
  }
  template <class D> CRESSET_FN D wide(D x, D n) {
    const double degree = vm::trunc(static_cast<double>(n.v[0]));
    const bool alike = !vm::reg::any(!(n == D(n.v[0])));
    if (!alike || !(degree >= 1 && degree <= 8))
      return map_lanes(x, n, [](double a, double b) { return one(a, b); });
    return special::recur<Family>(kShifted ? x + x - D(1.0) : x, static_cast<long>(degree));
  }
};
} // namespace detail

struct ChebyshevT : detail::Polynomial<special::ChebyshevT> {};
struct ChebyshevU : detail::Polynomial<special::ChebyshevU> {};
struct ChebyshevV : detail::Polynomial<special::ChebyshevV> {};
struct ChebyshevW : detail::Polynomial<special::ChebyshevW> {};
struct ShiftedChebyshevT : detail::Polynomial<special::ChebyshevT, true> {};
struct ShiftedChebyshevU : detail::Polynomial<special::ChebyshevU, true> {};
struct ShiftedChebyshevV : detail::Polynomial<special::ChebyshevV, true> {};
struct ShiftedChebyshevW : detail::Polynomial<special::ChebyshevW, true> {};
struct HermiteH : detail::Polynomial<special::HermiteH> {};
struct HermiteHe : detail::Polynomial<special::HermiteHe> {};
struct LaguerreL : detail::Polynomial<special::LaguerreL> {};
struct LegendreP : detail::Polynomial<special::LegendreP> {};

} // namespace CRESSET_ISA
} // namespace at::native::fn
