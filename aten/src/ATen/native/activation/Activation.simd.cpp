// Loop tables of the activations that choose their functor at run time or compute on parts of their
// input.
#include <ATen/iter/Loops.h>
#include <ATen/native/activation/ActivationTables.h>
#include <ATen/native/activation/Gates.h>
#include <ATen/native/pointwise/ActivationBackward.h>

namespace at::native {
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
