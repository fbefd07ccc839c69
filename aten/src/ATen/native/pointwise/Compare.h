// Comparisons and classification (bool results), and the four ways to take the larger or smaller of
// two numbers: maximum and minimum pass NaN on, fmax and fmin prefer the number.
#pragma once

#include <ATen/vec/ValueMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

struct Eq {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN auto apply(V a, V b) {
    if constexpr (vm::is_complex_v<V>) {
      return (a.real_ == b.real_) & (a.imag_ == b.imag_);
    } else {
      return a == b;
    }
  }
};
struct Ne {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN auto apply(V a, V b) {
    if constexpr (vm::is_complex_v<V>) {
      return (a.real_ != b.real_) | (a.imag_ != b.imag_);
    } else {
      return a != b;
    }
  }
};
struct Lt {
  template <class V> CRESSET_FN auto apply(V a, V b) { return a < b; }
};
struct Le {
  template <class V> CRESSET_FN auto apply(V a, V b) { return a <= b; }
};
struct Gt {
  template <class V> CRESSET_FN auto apply(V a, V b) { return a > b; }
};
struct Ge {
  template <class V> CRESSET_FN auto apply(V a, V b) { return a >= b; }
};

struct IsNan {
  template <class V> CRESSET_FN auto apply(V x) { return vm::isnan(x); }
};
struct IsInf {
  template <class V> CRESSET_FN auto apply(V x) { return vm::isinf(x); }
};
struct IsFinite {
  template <class V> CRESSET_FN auto apply(V x) { return vm::isfinite(x); }
};
struct IsPosInf {
  template <class V> CRESSET_FN auto apply(V x) { return vm::isinf(x) & (x > V(0)); }
};
struct IsNegInf {
  template <class V> CRESSET_FN auto apply(V x) { return vm::isinf(x) & (x < V(0)); }
};
struct Signbit {
  template <class V> CRESSET_FN auto apply(V x) { return vm::signbit(x); }
};

struct Maximum {
  template <class V> CRESSET_FN V apply(V a, V b) {
    return vm::select((a > b) | vm::isnan(a), a, b);
  }
};
struct Minimum {
  template <class V> CRESSET_FN V apply(V a, V b) {
    return vm::select((a < b) | vm::isnan(a), a, b);
  }
};
struct Fmax {
  template <class V> CRESSET_FN V apply(V a, V b) {
    return vm::select((a > b) | vm::isnan(b), a, b);
  }
};
struct Fmin {
  template <class V> CRESSET_FN V apply(V a, V b) {
    return vm::select((a < b) | vm::isnan(b), a, b);
  }
};
// 0 below zero, 1 above, `value` at zero; 0 for NaN.
struct Heaviside {
  template <class V> CRESSET_FN V apply(V x, V value) {
    using T = vm::element_t<V>;
    const V zero(T(0));
    return vm::select(x == zero, value, vm::select(x > zero, V(T(1)), zero));
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
