// Trigonometric and hyperbolic functions, real and complex.
#pragma once

#include <ATen/vec/RegisterMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

struct Sin {
  template <class V> CRESSET_FN V apply(V x) { return vm::sin(x); }
};
struct Cos {
  template <class V> CRESSET_FN V apply(V x) { return vm::cos(x); }
};
struct Tan {
  template <class V> CRESSET_FN V apply(V x) { return vm::reg::tan(x); }
};
struct Asin {
  template <class V> CRESSET_FN V apply(V x) { return vm::asin(x); }
};
struct Acos {
  template <class V> CRESSET_FN V apply(V x) { return vm::acos(x); }
};
struct Atan {
  template <class V> CRESSET_FN V apply(V x) { return vm::atan(x); }
};
struct Sinh {
  template <class V> CRESSET_FN V apply(V x) { return vm::reg::sinh(x); }
};
struct Cosh {
  template <class V> CRESSET_FN V apply(V x) { return vm::reg::cosh(x); }
};
struct Tanh {
  template <class V> CRESSET_FN V apply(V x) { return vm::tanh(x); }
};
struct Asinh {
  template <class V> CRESSET_FN V apply(V x) { return vm::asinh(x); }
};
struct Acosh {
  template <class V> CRESSET_FN V apply(V x) { return vm::acosh(x); }
};
struct Atanh {
  template <class V> CRESSET_FN V apply(V x) { return vm::reg::atanh(x); }
};
struct Atan2 {
  template <class V> CRESSET_FN V apply(V y, V x) { return vm::reg::atan2(y, x); }
};

struct Deg2rad {
  template <class V> CRESSET_FN V apply(V x) { return x * V(c10::pi<double> / 180.0); }
};
struct Rad2deg {
  template <class V> CRESSET_FN V apply(V x) { return x * V(180.0 / c10::pi<double>); }
};
// sin(pi x) / (pi x), 1 at 0.
struct Sinc {
  template <class V> CRESSET_FN V apply(V x) {
    const V product = V(c10::pi<double>) * x;
    return vm::select(x == V(0.0f), V(1.0f), vm::sin(product) / product);
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
