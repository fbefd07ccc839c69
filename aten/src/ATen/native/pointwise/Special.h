// Functors of the special functions; the routines are in SpecialMath.h and BesselMath.h.
#pragma once

#include <ATen/native/pointwise/BesselMath.h>
#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

struct Lgamma {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return vm::lgamma(x); }
};
struct Digamma {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::digamma(x)); }
};
struct Polygamma {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x, T order) {
    if (order == T(1) && x < T(0.5)) {
      // The reflection is rounded in the type of the data, as PyTorch's is.
      const T root = vm::sin(T(special::kPi) * x), square = T(special::kPi * special::kPi);
      return square / (root * root) - static_cast<T>(special::polygamma(1, 1 - double(x)));
    }
    return static_cast<T>(special::polygamma(order, x));
  }
};
struct Zeta {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x, T q) { return static_cast<T>(special::zeta(x, q)); }
};
struct Igamma {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T a, T x) {
    return static_cast<T>(special::regularized_gamma(a, x, false));
  }
};
struct Igammac {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T a, T x) {
    return static_cast<T>(special::regularized_gamma(a, x, true));
  }
};

struct Erfinv {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::erfinv(x)); }
};
struct Erfcx {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::erfcx(x)); }
};
struct Ndtr {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::ndtr(x)); }
};
struct Ndtri {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::ndtri(x)); }
};
struct LogNdtr {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::log_ndtr(x)); }
};

// -x log x, 0 at 0, -infinity below.
struct Entr {
  template <class V> CRESSET_FN V apply(V x) {
    const V zero(0.0);
    const V below(-c10::numeric_limits<vm::element_t<V>>::infinity());
    const V r = vm::select(x < zero, below, -x * vm::log(x));
    return vm::select(x == zero, zero, r);
  }
};
// x log y, 0 where x is 0 unless y is NaN.
struct Xlogy {
  template <class V> CRESSET_FN V apply(V x, V y) {
    return vm::select((x == V(0.0)) & !vm::isnan(y), V(0.0), x * vm::log(y));
  }
};
struct Xlog1py {
  template <class V> CRESSET_FN V apply(V x, V y) {
    return vm::select((x == V(0.0)) & !vm::isnan(y), V(0.0), x * vm::log1p(y));
  }
};

struct I0 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::bessel_i(0, x)); }
};
struct I0e {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(special::bessel_i_scaled(0, x));
  }
};
struct I1 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::bessel_i(1, x)); }
};
struct I1e {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(special::bessel_i_scaled(1, x));
  }
};
struct K0 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(special::bessel_k(0, x, false));
  }
};
struct K1 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(special::bessel_k(1, x, false));
  }
};
struct K0e {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(special::bessel_k(0, x, true));
  }
};
struct K1e {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(special::bessel_k(1, x, true));
  }
};
struct J0 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(vm::isinf(x) ? 0.0 : __builtin_j0(x));
  }
};
struct J1 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(vm::isinf(x) ? 0.0 : __builtin_j1(x));
  }
};
// Not defined below 0, minus infinity at 0.
struct Y0 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(x < 0 ? special::kNan : x == 0 ? -special::kInf : __builtin_y0(x));
  }
};
struct Y1 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(x < 0 ? special::kNan : x == 0 ? -special::kInf : __builtin_y1(x));
  }
};
struct AiryAi {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::airy_ai(x)); }
};
struct SphericalJ0 {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) {
    return static_cast<T>(special::spherical_bessel_j0(x));
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
