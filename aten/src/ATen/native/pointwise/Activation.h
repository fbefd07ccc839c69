// Activation functions. Written from their definitions, with the NaN behaviour users rely on: NaN
// in, NaN out.
#pragma once

#include <type_traits>

#include <ATen/native/pointwise/Compare.h>
#include <ATen/native/pointwise/ComplexExp.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

namespace detail {
// 1 / (1 + e^-x)
template <class V> CRESSET_FN V sigmoid(V x) {
  return vm::reg::divide(V(1.0f), V(1.0f) + vm::reg::exp(-x));
}
// log(1 + e^x) without overflow: max(x, 0) + log1p(e^-|x|).
template <class V> CRESSET_FN V log1p_exp(V x) {
  const V zero(0.0);
  return vm::select(x > zero, x, zero) + vm::log1p(vm::exp(-vm::abs(x)));
}
// min(max(x + 3, 0), 6)
template <class V> CRESSET_FN V clamp_0_6(V x) {
  return Minimum::apply(Maximum::apply(x, V(0.0)), V(6.0));
}
} // namespace detail

struct Sigmoid {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) { return detail::sigmoid(x); }
};
// min(x, 0) - log1p(e^-|x|)
struct LogSigmoid {
  template <class V> CRESSET_FN V apply(V x) { return -detail::log1p_exp(-x); }
};
struct Silu {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) {
    return vm::reg::divide(x, V(1.0f) + vm::reg::exp(-x));
  }
};
struct Relu {
  template <class V> CRESSET_FN V apply(V x) {
    using T = vm::element_t<V>;
    return vm::select(x < V(T(0)), V(T(0)), x);
  }
};
struct LeakyRelu {
  template <class V> CRESSET_FN V apply(V x, V slope) {
    return vm::select(x > V(0.0), x, x * slope);
  }
};
// The slope is an input.
struct Prelu {
  template <class V> CRESSET_FN V apply(V x, V slope) {
    return vm::select(x > V(0.0), x, x * slope);
  }
};
// x scale above 0, alpha scale (e^(x input_scale) - 1) below.
struct Elu {
  template <class V> CRESSET_FN V apply(V x, V alpha, V scale, V input_scale) {
    const V negative = vm::expm1(x * input_scale) * (alpha * scale);
    return vm::select(x > V(0.0), x * scale, negative);
  }
};
struct Hardtanh {
  template <class V> CRESSET_FN V apply(V x, V low, V high) {
    return Minimum::apply(Maximum::apply(x, low), high);
  }
};
// log(1 + e^(beta x)) / beta, and x itself where beta x exceeds the threshold.
struct Softplus {
  template <class V> CRESSET_FN V apply(V x, V beta, V threshold) {
    const V scaled = x * beta;
    return vm::select(scaled > threshold, x, vm::log1p(vm::exp(scaled)) / beta);
  }
};
struct Mish {
  template <class V> CRESSET_FN V apply(V x) { return x * vm::tanh(detail::log1p_exp(x)); }
};
struct Hardswish {
  template <class V> CRESSET_FN V apply(V x) { return x * detail::clamp_0_6(x + V(3.0)) / V(6.0); }
};
struct Hardsigmoid {
  template <class V> CRESSET_FN V apply(V x) { return detail::clamp_0_6(x + V(3.0)) / V(6.0); }
};
struct Threshold {
  template <class V> CRESSET_FN V apply(V x, V threshold, V value) {
    return vm::select(x <= threshold, value, x);
  }
};
struct Hardshrink {
  template <class V> CRESSET_FN V apply(V x, V lambda) {
    return vm::select((x >= -lambda) & (x <= lambda), V(0.0), x);
  }
};
struct Softshrink {
  template <class V> CRESSET_FN V apply(V x, V lambda) {
    const V inner = x * V(0.0); // 0, or NaN for NaN
    return vm::select(x > lambda, x - lambda, vm::select(x < -lambda, x + lambda, inner));
  }
};

namespace detail {
#if !defined(CRESSET_DEVICE)
// 1 - Phi(a) for registers of floats, Phi the normal distribution function and a in [0, 6.5]: a
// polynomial for its binary logarithm, one for the fraction of the power of two. The errors of x
// Phi(x) that come of it are below 3e-7, relative above -1 and absolute everywhere.
C10_ALWAYS_INLINE vec::Vec<float> normal_tail(vec::Vec<float> a) {
  using V = vec::Vec<float>;
  static constexpr float kLog2[] = {-0.999999858f,   -1.1511104f,    -0.459178096f,
                                    -0.0525509225f,  0.00708257308f, -8.94168965e-5f,
                                    -0.00024828586f, 7.17246183e-5f, -1.12821322e-5f,
                                    1.08451883e-6f,  -5.9740586e-8f, 1.44911948e-9f};
  static constexpr float kExp2[] = {1.0f,          0.693147207f,   0.240226512f,  0.0555032721f,
                                    0.0096180256f, 0.00134004322f, 0.00015469732f};
  const V y = vm::detail::poly(a, kLog2), magic(vm::detail::ExpConstants<float>::kMagic);
  const V shifted = y + magic; // its low bits are y rounded to an integer
  const V fraction = vm::detail::poly(y - (shifted - magic), kExp2);
  return vm::as_float<float>(vm::as_int(fraction) + (vm::as_int(shifted) << vec::Vec<int>(23)));
}
C10_ALWAYS_INLINE vec::Vec<float> limited_abs(vec::Vec<float> x) {
  const vec::Vec<float> a = vm::abs(x), limit(6.5f);
  return vm::select(a > limit, limit, a);
}
#endif
// Phi(x)
template <class V> CRESSET_FN V normal_cdf(V x) {
  if constexpr (std::is_same_v<V, vec::Vec<float>>) {
    const V tail = normal_tail(limited_abs(x));
    return vm::select(x > V(0.0f), V(1.0f) - tail, tail);
  } else {
    return V(0.5) * (V(1.0) + vm::erf(x * V(c10::frac_sqrt_2<double>)));
  }
}
} // namespace detail

// x Phi(x), for registers max(x, 0) - |x| (1 - Phi(|x|)).
struct Gelu {
  template <class V> CRESSET_FN V apply(V x) {
    if constexpr (std::is_same_v<V, vec::Vec<float>>) {
      const V a = detail::limited_abs(x), zero(0.0f);
      return vm::fma(-a, detail::normal_tail(a), vm::select(x > zero, x, zero));
    } else {
      return x * detail::normal_cdf(x);
    }
  }
};
namespace detail {
inline constexpr double kGeluScale = 0.79788456080286535588; // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;
} // namespace detail
struct GeluTanh {
  template <class V> CRESSET_FN V apply(V x) {
    const V inner = V(detail::kGeluScale) * (x + V(detail::kGeluCubic) * x * x * x);
    return V(0.5) * x * (V(1.0) + vm::tanh(inner));
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
