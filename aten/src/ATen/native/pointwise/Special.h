// Functors of the special functions; the routines are in SpecialMath.h, InverseErf.h, GammaMath.h,
// BesselI.h, BesselK.h, BesselWave.h and BesselMath.h.
#pragma once

#include <ATen/native/pointwise/BesselI.h>
#include <ATen/native/pointwise/BesselK.h>
#include <ATen/native/pointwise/BesselMath.h>
#include <ATen/native/pointwise/BesselWave.h>
#include <ATen/native/pointwise/GammaMath.h>
#include <ATen/native/pointwise/InverseErf.h>
#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

struct Lgamma {
  template <class V> CRESSET_FN V apply(V x) {
    if constexpr (vm::is_vec_v<V>) {
      return vm::reg::in_double(x, [](auto wide) { return special::lgamma(wide); });
    } else {
      return vm::lgamma(x);
    }
  }
};
struct Digamma {
  template <class V> CRESSET_FN V apply(V x) {
    return vm::reg::in_double(x, [](auto wide) { return special::digamma(wide); });
  }
};
struct Polygamma {
  template <class V> CRESSET_FN V apply(V x, V order) {
    if constexpr (vm::is_vec_v<V>) {
      if (order.v[0] == 0) return Digamma::apply(x); // a number: all lanes are alike
      return map_lanes(x, [n = order.v[0]](auto one) { return scalar(one, n); });
    } else {
      return scalar(x, order);
    }
  }

 private:
  template <class T> CRESSET_FN T scalar(T x, T order) {
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
  template <class V> CRESSET_FN V apply(V x) { return special::erfinv(x); }
};
struct Erfcx {
  template <class V> CRESSET_FN V apply(V x) {
    return vm::reg::in_double(x, [](auto wide) { return special::erfcx(wide); });
  }
};
struct Ndtr {
  template <class V> CRESSET_FN V apply(V x) {
    return vm::reg::in_double(x, [](auto wide) {
      using D = decltype(wide);
      return D(0.5) * vm::reg::erfc(wide * D(-c10::frac_sqrt_2<double>));
    });
  }
};
struct Ndtri {
  template <class V> CRESSET_FN V apply(V x) { return special::ndtri(x); }
};
struct LogNdtr {
  template <class V> CRESSET_FN V apply(V x) {
    return vm::reg::in_double(x, [](auto wide) {
      using D = decltype(wide);
      const D t = wide * D(c10::frac_sqrt_2<double>), half(0.5);
      const D low = vm::log(special::erfcx(-t) * half) - t * t;
      return vm::select(wide < D(-1.0), low, vm::log1p(-vm::reg::erfc(t) * half));
    });
  }
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
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_i<0>(x); }
};
struct I0e {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_ie<0>(x); }
};
struct I1 {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_i<1>(x); }
};
struct I1e {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_ie<1>(x); }
};
struct K0 {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_k<0, false>(x); }
};
struct K1 {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_k<1, false>(x); }
};
struct K0e {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_k<0, true>(x); }
};
struct K1e {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_k<1, true>(x); }
};
struct J0 {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_wave<1, 0>(x); }
};
struct J1 {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_wave<1, 1>(x); }
};
struct Y0 {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_wave<2, 0>(x); }
};
struct Y1 {
  template <class V> CRESSET_FN V apply(V x) { return special::bessel_wave<2, 1>(x); }
};
struct AiryAi {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T x) { return static_cast<T>(special::airy_ai(x)); }
};
struct SphericalJ0 {
  template <class V> CRESSET_FN V apply(V x) {
    return vm::reg::in_double(x, [](auto wide) {
      using D = decltype(wide);
      const D near = vm::fma(wide * wide, D(-1.0 / 6), D(1.0));
      const D r = vm::select(vm::abs(wide) < D(1e-4), near, vm::sin(wide) / wide);
      return vm::select(vm::isinf(wide), D(0.0), r);
    });
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
