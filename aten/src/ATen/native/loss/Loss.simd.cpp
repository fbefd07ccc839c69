// Loop tables of the elementwise losses.
#include <ATen/iter/Loops.h>
#include <ATen/native/loss/LossFunctors.h>
#include <ATen/native/loss/LossTables.h>

namespace at::native {
namespace CRESSET_ISA {
namespace {
template <class F, int kInputs, int kParams> constexpr LoopTable loss_table() {
  return make_loop_table<F, kInputs, kParams, OutKind::Same>(types::floating{});
}
} // namespace
const LoopTable loss_Mse = loss_table<fn::Mse, 2, 0>();
const LoopTable loss_MseBackward = loss_table<fn::MseBackward, 3, 1>();
const LoopTable loss_SmoothL1 = loss_table<fn::SmoothL1, 2, 1>();
const LoopTable loss_SmoothL1Backward = loss_table<fn::SmoothL1Backward, 3, 2>();
const LoopTable loss_Huber = loss_table<fn::Huber, 2, 1>();
const LoopTable loss_HuberBackward = loss_table<fn::HuberBackward, 3, 2>();
const LoopTable loss_SoftMargin = loss_table<fn::SoftMargin, 2, 0>();
const LoopTable loss_SoftMarginBackward = loss_table<fn::SoftMarginBackward, 3, 1>();
const LoopTable loss_Bce = loss_table<fn::Bce, 2, 0>();
const LoopTable loss_BceBackward = loss_table<fn::BceBackward, 3, 0>();
const LoopTable loss_BceLogits = loss_table<fn::BceLogits, 2, 0>();
const LoopTable loss_BceLogitsWeighted = loss_table<fn::BceLogitsWeighted, 3, 0>();
} // namespace CRESSET_ISA
} // namespace at::native
