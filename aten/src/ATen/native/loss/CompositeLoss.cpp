// Losses that are formulas over other operators.
#include <cmath>

#include <ATen/core/HandlerKeys.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/Native.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/le.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/log.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>
#include <c10/util/MathConstants.h>

namespace at::native {
namespace {

// The p-norm of a - b + eps along the last dimension.
Tensor distance(const Tensor& a, const Tensor& b, double p, double eps) {
  const int64_t last = -1;
  return at::linalg_vector_norm(at::add(at::sub(a, b), eps), p, IntArrayRef(&last, 1));
}
} // namespace

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return apply_reduction(at::abs(at::sub(self, target)), reduction);
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  TORCH_CHECK(!self.is_complex() && !target.is_complex(), "kl_div: Complex inputs not supported.");
  TORCH_CHECK(!c10::isIntegralType(self.scalar_type(), true) &&
                  !c10::isIntegralType(target.scalar_type(), true),
              "kl_div: Integral inputs not supported.");
  const Tensor loss = log_target ? at::mul(at::exp(target), at::sub(target, self))
                                 : at::sub(at::xlogy(target, target), at::mul(target, self));
  return apply_reduction(loss, reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  Tensor loss = log_input ? at::sub(at::exp(input), at::mul(target, input))
                          : at::sub(input, at::mul(target, at::log(at::add(input, eps))));
  if (full) {
    // Stirling's formula for log(target!), for targets above 1.
    const Tensor stirling = at::add(at::sub(at::mul(target, at::log(target)), target),
                                    at::mul(at::log(at::mul(target, 2 * c10::pi<double>)), 0.5));
    loss = at::add(loss, at::where(at::le(target, 1), 0.0, stirling));
  }
  return apply_reduction(loss, reduction);
}

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  // In the dtype of the input, integers too.
  const Tensor outside = at::clamp_min(at::rsub(self, margin), 0).to(self.scalar_type());
  const Tensor loss =
      at::add(at::where(at::eq(target, 1), 0, outside), at::where(at::eq(target, -1), 0, self));
  return apply_reduction(loss, reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  TORCH_CHECK(
      input1.dim() == input2.dim() && input1.dim() == target.dim(),
      "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: ",
      input1.sizes(), ", input2: ", input2.sizes(), ", target: ", target.sizes());
  const Tensor distance = at::add(at::mul(at::neg(target), at::sub(input1, input2)), margin);
  if (handlers_active()) {
    Tensor shown = distance;
    return apply_reduction(at::_ops::clamp_min_::call(shown, 0), reduction);
  }
  return apply_reduction(at::clamp_min(distance, 0), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  constexpr double kEps = 1e-12;
  TORCH_CHECK(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  const char* ranks =
      target.dim() == 1 ? "1D target tensor expects 2D input tensors, but found inputs with sizes "
                        : "0D target tensor expects 1D input tensors, but found inputs with sizes ";
  TORCH_CHECK(input1.dim() == target.dim() + 1 && input2.dim() == target.dim() + 1, ranks,
              input1.sizes(), " and ", input2.sizes(), ".");
  const int64_t dim = target.dim();
  const auto total = [&](const Tensor& a, const Tensor& b) {
    return at::sum(at::mul(a, b), IntArrayRef(&dim, 1));
  };
  const Tensor squares =
      at::mul(at::add(total(input1, input1), kEps), at::add(total(input2, input2), kEps));
  const Tensor cosine = at::div(total(input1, input2), at::sqrt(squares));
  const Tensor positive = at::where(at::eq(target, 1), at::rsub(cosine, 1), 0.0);
  const Tensor negative =
      at::where(at::eq(target, -1), at::clamp_min(at::sub(cosine, margin), 0), 0.0);
  return apply_reduction(at::add(positive, negative), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  TORCH_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
              "The anchor, positive, and negative tensors are expected to have the same number of "
              "dimensions, but got: "
              "anchor ",
              anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(),
              "D inputs");
  const Tensor near = distance(anchor, positive, p, eps);
  Tensor far = distance(anchor, negative, p, eps);
  if (swap) far = at::minimum(far, distance(positive, negative, p, eps));
  return apply_reduction(at::clamp_min(at::add(at::sub(near, far), margin), 0), reduction);
}
} // namespace at::native
