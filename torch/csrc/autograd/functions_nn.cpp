// Gradients of activations, losses and renorm that have no operator of their own. See functions.h.
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/log.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

// Left of zero the slope is input_scale * alpha * scale * exp(input_scale * x), which in terms of the
// result is input_scale * (result + alpha * scale).
Tensor elu_slope_grad(const Tensor& grad, const Tensor& grad_output, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                      bool is_result, const Tensor& self_or_result) {
  const double a = alpha.toDouble() * scale.toDouble(), i = input_scale.toDouble();
  Tensor slope = grad * grad_output * i;
  if (!is_result) slope = slope * at::exp(self_or_result * i) * (a * i);
  return keep_where(slope, at::le(self_or_result, 0));
}

// A row longer than maxnorm is multiplied by f = maxnorm / (norm + 1e-7), which depends on the row.
Tensor renorm_grad(const Tensor& grad, const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  const int64_t rank = self.dim(), kept = dim < 0 ? dim + rank : dim;
  c10::DimVector others;
  for (int64_t d = 0; d < rank; ++d)
    if (d != kept) others.push_back(d);
  const OptionalIntArrayRef dims{IntArrayRef(others)};
  const Tensor norm = at::linalg_vector_norm(self, p, dims, true);
  const Tensor longer = norm + 1e-7;
  const Tensor along = at::sum(grad * cj(self), dims, true);
  const Tensor of_norm = norm_grad(along, self, norm, p, dims, true);
  const Tensor shortened = (grad - of_norm / longer) * maxnorm / longer;
  return at::where(at::gt(norm, maxnorm), shortened, grad);
}

namespace {
// The gradient of each element's loss.
Tensor of_elements(const Tensor& grad, const Tensor& self, const OptionalTensor& weight, int64_t reduction) {
  Tensor g = weight ? grad * *weight : grad;
  return reduction == 1 ? g / self.numel() : g;
}
}  // namespace

Tensor bce_target_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& weight, int64_t reduction) {
  const Tensor yes = at::clamp_min(at::log(self), -100), no = at::clamp_min(at::log(1 - self), -100);
  return of_elements(grad, self, weight, reduction) * (no - yes);
}

// loss = (1 - t) x + (1 + (pos_weight - 1) t) log(1 + exp(-x))
Tensor bce_with_logits_grad(const Tensor& grad, const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                            const OptionalTensor& pos_weight, int64_t reduction) {
  const Tensor g = of_elements(grad, self, weight, reduction);
  if (!pos_weight) return g * (at::sigmoid(self) - target);
  const Tensor factor = (*pos_weight - 1) * target + 1;
  return g * ((1 - target) - factor * at::sigmoid(-self));
}
Tensor bce_with_logits_target_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& weight, const OptionalTensor& pos_weight,
                                   int64_t reduction) {
  const Tensor g = of_elements(grad, self, weight, reduction);
  if (!pos_weight) return -(g * self);
  return g * ((*pos_weight - 1) * at::softplus(-self) - self);
}

}  // namespace torch::autograd::generated
