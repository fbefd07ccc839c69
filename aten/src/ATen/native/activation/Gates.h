// The functors of gated activations: glu, and the two gradients of prelu.
#pragma once

#include <ATen/native/pointwise/ActivationBackward.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

// x sigmoid(gate)
struct Glu {
  template <class V> CRESSET_FN V apply(V x, V gate) { return x * detail::sigmoid(gate); }
};
// Gradient of Glu for its gate.
struct GluGate {
  template <class V> CRESSET_FN V apply(V grad, V x, V gate) {
    const V s = detail::sigmoid(gate);
    return grad * x * (s * (V(1.0) - s));
  }
};
// Gradient of prelu for its slope, before it is summed.
struct PreluSlope {
  template <class V> CRESSET_FN V apply(V grad, V x) {
    return vm::select(x > V(0.0), V(0.0), x * grad);
  }
};
// Gradient of prelu for x.
struct PreluInput {
  template <class V> CRESSET_FN V apply(V grad, V x, V slope) {
    return vm::select(x > V(0.0), grad, grad * slope);
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
