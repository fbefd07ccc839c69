// Functions of one number: sign and parts, roots, exponentials and logarithms, the error function.
// Trigonometry is in Trig.h, rounding in Round.h, special functions in Special.h.
#pragma once

#include <type_traits>

#include <ATen/vec/RegisterMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

// Of a complex number the magnitude, a real result.
struct Abs {
  template <class V> CRESSET_FN auto apply(V x) {
    if constexpr (vm::is_complex_v<V>) {
      return vm::magnitude(x);
    } else {
      return vm::abs(x);
    }
  }
};
struct Neg {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) { return -x; }
};
struct Positive {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) { return x; }
};
struct ConjPhysical {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) {
    if constexpr (vm::is_complex_v<V>) {
      return V(x.real_, -x.imag_);
    } else {
      return x;
    }
  }
};
// 0 or pi for real numbers.
struct Angle {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN auto apply(V x) {
    if constexpr (vm::is_complex_v<V>) {
      return vm::reg::atan2(x.imag_, x.real_);
    } else {
      const V zero(0.0);
      const V angle = vm::select(x < zero, V(c10::pi<double>), zero);
      return vm::select(vm::isnan(x), x, angle);
    }
  }
};
// -1, 0 or 1; 0 for NaN.
struct Sign {
  template <class V> CRESSET_FN V apply(V x) {
    using T = vm::element_t<V>;
    if constexpr (std::is_same_v<T, bool>) {
      return x;
    } else {
      const V zero(T(0)), one(T(1));
      const V positive = vm::select(x > zero, one, zero);
      if constexpr (T(-1) < T(0)) {
        return vm::select(x < zero, V(T(-1)), positive);
      } else {
        return positive;
      }
    }
  }
};
// The sign, and for complex numbers the direction.
struct Sgn {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) {
    if constexpr (vm::is_complex_v<V>) {
      using R = vm::element_of_complex_t<V>;
      const R size = vm::reg::magnitude(x), zero(0.0f);
      return V(vm::select(size == zero, zero, x.real_ / size),
               vm::select(size == zero, zero, x.imag_ / size));
    } else {
      return Sign::apply(x);
    }
  }
};

struct Reciprocal {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) {
    if constexpr (vm::is_complex_v<V>) {
      return vm::reg::reciprocal(x);
    } else {
      return V(1.0f) / x;
    }
  }
};
struct Sqrt {
  template <class V> CRESSET_FN V apply(V x) { return vm::sqrt(x); }
};
struct Rsqrt {
  template <class V> CRESSET_FN V apply(V x) { return V(1.0f) / vm::sqrt(x); }
};

struct Exp {
  template <class V> CRESSET_FN V apply(V x) { return vm::exp(x); }
};
struct Exp2 {
  template <class V> CRESSET_FN V apply(V x) { return vm::exp2(x); }
};
struct Expm1 {
  template <class V> CRESSET_FN V apply(V x) { return vm::expm1(x); }
};
struct Log {
  template <class V> CRESSET_FN V apply(V x) { return vm::log(x); }
};
struct Log2 {
  template <class V> CRESSET_FN V apply(V x) { return vm::reg::log2(x); }
};
struct Log10 {
  template <class V> CRESSET_FN V apply(V x) { return vm::log10(x); }
};
struct Log1p {
  template <class V> CRESSET_FN V apply(V x) { return vm::log1p(x); }
};

struct Erf {
  template <class V> CRESSET_FN V apply(V x) { return vm::erf(x); }
};
struct Erfc {
  template <class V> CRESSET_FN V apply(V x) { return vm::reg::erfc(x); }
};

// log(x / (1 - x)); where eps is not negative x is first clamped to [eps, 1 - eps].
struct Logit {
  template <class V> CRESSET_FN V apply(V x, V eps) {
    const V one(1.0), high = one - eps, zero(0.0);
    const auto clamp = eps >= zero;
    const auto below = clamp & (x < eps);
    x = vm::select(clamp & (x > high), high, x);
    x = vm::select(below, eps, x);
    return vm::log(x / (one - x));
  }
};

struct LogAddExp {
  template <class V> CRESSET_FN V apply(V a, V b) {
    if constexpr (vm::is_complex_v<V>) {
      const V high = a.real_ < b.real_ ? b : a, low = a.real_ < b.real_ ? a : b;
      if (vm::isnan(a) || vm::isnan(b)) {
        return a + b;
      }
      return vm::isinf(high.real_) && high == low ? high : high + vm::log1p(vm::exp(low - high));
    } else {
      const V high = vm::select(a < b, b, a);
      const V r = high + vm::log1p(vm::exp(-vm::abs(a - b)));
      return vm::select(vm::isinf(a) & (a == b), a, r);
    }
  }
};
struct LogAddExp2 {
  template <class V> CRESSET_FN V apply(V a, V b) {
    const V high = vm::select(a < b, b, a);
    const V r = high + vm::log1p(vm::exp2(-vm::abs(a - b))) * V(c10::log2_e<double>);
    return vm::select(vm::isinf(a) & (a == b), a, r);
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
