// Loop tables of the activations that choose their functor at run time or compute on parts of their
// input, and the functors that only they use.
#include <ATen/iter/Loops.h>
#include <ATen/native/activation/ActivationTables.h>
#include <ATen/native/pointwise/ActivationBackward.h>

namespace at::native {
namespace fn {
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
} // namespace fn

namespace CRESSET_ISA {
template <class F, int kInputs, int kParams> constexpr LoopTable activation_table() {
  return make_loop_table<F, kInputs, kParams, OutKind::Same>(types::floating{});
}
const LoopTable activation_Gelu = activation_table<fn::Gelu, 1, 0>();
const LoopTable activation_GeluTanh = activation_table<fn::GeluTanh, 1, 0>();
const LoopTable activation_GeluBackward = activation_table<fn::GeluBackward, 2, 0>();
const LoopTable activation_GeluTanhBackward = activation_table<fn::GeluTanhBackward, 2, 0>();
const LoopTable activation_EluBackward = activation_table<fn::EluBackward, 2, 3>();
const LoopTable activation_EluBackwardFromResult =
    activation_table<fn::EluBackwardFromResult, 2, 3>();
const LoopTable activation_LeakyReluBackward = activation_table<fn::LeakyReluBackward, 2, 1>();
const LoopTable activation_LogSigmoid = activation_table<fn::LogSigmoid, 1, 0>();
const LoopTable activation_LogSigmoidBackward = activation_table<fn::LogSigmoidBackward, 2, 0>();
const LoopTable activation_LogitBackward = activation_table<fn::LogitBackward, 2, 1>();
const LoopTable activation_Glu = activation_table<fn::Glu, 2, 0>();
const LoopTable activation_GluGate = activation_table<fn::GluGate, 3, 0>();
const LoopTable activation_PreluSlope = activation_table<fn::PreluSlope, 2, 0>();
const LoopTable activation_PreluInput = activation_table<fn::PreluInput, 3, 0>();
} // namespace CRESSET_ISA
} // namespace at::native
