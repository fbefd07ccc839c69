// The elementwise losses and their gradients as functors. Arguments: input x, target t; gradients
// take the incoming gradient first and end with `norm`, the factor of the reduction.
#pragma once

#include <ATen/native/loss/Probability.h>
#include <ATen/native/pointwise/ActivationBackward.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

struct Mse {
  template <class V> CRESSET_FN V apply(V x, V t) {
    const V d = x - t;
    return d * d;
  }
};
struct MseBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V t, V norm) { return norm * (x - t) * grad; }
};
// |d| - beta / 2, and d^2 / (2 beta) below beta.
struct SmoothL1 {
  template <class V> CRESSET_FN V apply(V x, V t, V beta) {
    const V d = vm::abs(x - t), half(0.5);
    return vm::select(d < beta, half * d * d / beta, d - half * beta);
  }
};
struct SmoothL1Backward {
  template <class V> CRESSET_FN V apply(V grad, V x, V t, V beta, V norm) {
    const V d = x - t, slope = norm * grad;
    const V inner = slope * d / beta;
    return vm::select(d <= -beta, -slope, vm::select(d >= beta, slope, inner));
  }
};
// d^2 / 2, and delta (|d| - delta / 2) above delta.
struct Huber {
  template <class V> CRESSET_FN V apply(V x, V t, V delta) {
    const V d = vm::abs(x - t), half(0.5);
    return vm::select(d <= delta, half * d * d, delta * (d - half * delta));
  }
};
struct HuberBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V t, V delta, V norm) {
    const V d = x - t, slope = norm * grad;
    const V edge = slope * delta;
    return vm::select(d <= -delta, -edge, vm::select(d >= delta, edge, slope * d));
  }
};
struct SoftMargin {
  template <class V> CRESSET_FN V apply(V x, V t) { return detail::log1p_exp(-(x * t)); }
};
struct SoftMarginBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V t, V norm) {
    return -norm * t * grad * detail::sigmoid(-(x * t));
  }
};
// Logarithms are limited at -100, so that the loss of a certain and wrong prediction stays finite.
struct Bce {
  template <class V> CRESSET_FN V apply(V x, V t) {
    const V lowest(-100.0), one(1.0);
    check_probability(x);
    const V log_x = Maximum::apply(vm::log(x), lowest);
    const V log_rest = Maximum::apply(vm::log1p(-x), lowest);
    return (t - one) * log_rest - t * log_x;
  }
};
struct BceBackward {
  template <class V> CRESSET_FN V apply(V grad, V x, V t) {
    return grad * (x - t) / Maximum::apply((V(1.0) - x) * x, V(1e-12));
  }
};
// (1 - t) x - log(sigmoid(x))
struct BceLogits {
  template <class V> CRESSET_FN V apply(V x, V t) {
    return (V(1.0) - t) * x + detail::log1p_exp(-x);
  }
};
// The same with positive targets weighted.
struct BceLogitsWeighted {
  template <class V> CRESSET_FN V apply(V x, V t, V positive) {
    const V one(1.0), weight = (positive - one) * t + one;
    return (one - t) * x + weight * detail::log1p_exp(-x);
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
