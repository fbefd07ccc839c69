// Gradients of the activations as single passes. The first input is the incoming gradient; the
// second is the forward input x, or the forward output y where the derivative is simplest in it.
#pragma once

#include <ATen/native/pointwise/Activation.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

// conj for complex numbers, so that these serve both.
namespace detail {
template <class V> CRESSET_FN V conj(V x) {
  if constexpr (vm::is_complex_v<V>) {
    return V(x.real_, -x.imag_);
  } else {
    return x;
  }
}
} // namespace detail

struct SigmoidBackward {
  template <class V> CRESSET_FN V apply(V grad, V y) {
    return grad * detail::conj((V(1.0f) - y) * y);
  }
};
struct TanhBackward {
  template <class V> CRESSET_FN V apply(V grad, V y) {
    return grad * detail::conj(V(1.0f) - y * y);
  }
};
struct LogitBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V eps) {
    const V one(1.0), zero(0.0), nan(c10::numeric_limits<vm::element_t<V>>::quiet_NaN());
    const auto clamped = eps >= zero;
    const V inside = grad / (x * (one - x));
    const V low = vm::select(clamped, eps, zero), high = one - low;
    return vm::select((x >= low) & (x <= high), inside, vm::select(clamped, zero, nan));
  }
};
struct LogSigmoidBackward {
  template <class V> CRESSET_FN V apply(V grad, V x) { return grad * detail::sigmoid(-x); }
};
struct SiluBackward {
  template <class V> CRESSET_FN V apply(V grad, V x) {
    const V one(1.0f), s = detail::sigmoid(x);
    return grad * detail::conj(s * (one + x * (one - s)));
  }
};
struct ThresholdBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V threshold) {
    using T = vm::element_t<V>;
    return vm::select(x <= threshold, V(T(0)), grad);
  }
};
struct LeakyReluBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V slope) {
    return vm::select(x > V(0.0), grad, grad * slope);
  }
};
struct EluBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V alpha, V scale, V input_scale) {
    const V negative = grad * (alpha * scale * input_scale) * vm::exp(x * input_scale);
    return vm::select(x > V(0.0), grad * scale, negative);
  }
};
// From the output: e^(input_scale x) = y / (alpha scale) + 1.
struct EluBackwardFromResult {
  template <class V> CRESSET_FN V apply(V grad, V y, V alpha, V scale, V input_scale) {
    const V negative = grad * input_scale * (y + alpha * scale);
    return vm::select(y > V(0.0), grad * scale, negative);
  }
};
struct HardtanhBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V low, V high) {
    return vm::select((x > low) & (x < high), grad, V(0.0));
  }
};
struct SoftplusBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V beta, V threshold) {
    const V scaled = x * beta;
    return vm::select(scaled > threshold, grad, grad * detail::sigmoid(scaled));
  }
};
struct MishBackward {
  template <class V> CRESSET_FN V apply(V grad, V x) {
    const V t = vm::tanh(detail::log1p_exp(x));
    return grad * (t + x * detail::sigmoid(x) * (V(1.0) - t * t));
  }
};
struct HardswishBackward {
  template <class V> CRESSET_FN V apply(V grad, V x) {
    const V three(3.0);
    const V middle = grad * (x / three + V(0.5));
    return vm::select(x <= -three, V(0.0), vm::select(x >= three, grad, middle));
  }
};
struct HardsigmoidBackward {
  template <class V> CRESSET_FN V apply(V grad, V x) {
    const V three(3.0);
    return vm::select((x > -three) & (x < three), grad / V(6.0), V(0.0));
  }
};
// Of both shrinkages.
struct ShrinkBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V lambda) {
    return vm::select((x > lambda) | (x < -lambda), grad, V(0.0));
  }
};
struct GeluBackward {
  template <class V> CRESSET_FN V apply(V grad, V x) {
    constexpr double kDensity = 0.39894228040143267794; // 1 / sqrt(2 pi)
    if constexpr (std::is_same_v<V, vec::Vec<float>>) {
      const V a = detail::limited_abs(x), tail = detail::normal_tail(a);
      const V slope = a * V(float(kDensity)) * vm::detail::exp_in_range(V(-0.5f) * a * a);
      // Phi(x) + x phi(x) for negative x; for positive x 1 minus it.
      const V lower = tail - slope;
      return grad * vm::select(x > V(0.0f), V(1.0f) - lower, lower);
    } else {
      const V pdf = vm::exp(V(-0.5) * x * x) * V(kDensity);
      return grad * (detail::normal_cdf(x) + x * pdf);
    }
  }
};
struct GeluTanhBackward {
  template <class V> CRESSET_FN V apply(V grad, V x) {
    const V half(0.5), one(1.0), scale(detail::kGeluScale), cubic(detail::kGeluCubic);
    const V square = x * x;
    const V t = vm::tanh(scale * (x + cubic * square * x));
    const V slope = scale * (one + V(3.0) * cubic * square);
    return grad * (half * (one + t) + half * x * (one - t * t) * slope);
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
