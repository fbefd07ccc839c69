// Gradients of activations, losses and renorm that have no operator of their own. See functions.h.
#include <ATen/core/HandlerKeys.h>
#include <ATen/native/attention/PackedGradients.h>
#include <ATen/ops/_cudnn_attention_backward.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/detach.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/log.h>
#include <ATen/ops/native_group_norm_backward.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

std::tuple<Tensor, Tensor, Tensor>
cudnn_attention_grads(const Tensor& grad, const Tensor& query, const Tensor& key,
                      const Tensor& value, const std::optional<Tensor>& attn_mask,
                      const Tensor& output, const Tensor& logsumexp, const Tensor& seed,
                      double dropout_p, bool is_causal, double scale) {
  const at::native::PackGradients packs(!at::seen_by_handlers(grad));
  return at::_cudnn_attention_backward(grad, query, key, value, attn_mask, output, logsumexp, seed,
                                       dropout_p, is_causal, scale);
}

// Left of zero the slope is input_scale * alpha * scale * exp(input_scale * x), which in terms of
// the result is input_scale * (result + alpha * scale).
Tensor elu_slope_grad(const Tensor& grad, const Tensor& grad_output, const Scalar& alpha,
                      const Scalar& scale, const Scalar& input_scale, bool is_result,
                      const Tensor& self_or_result) {
  const double a = alpha.toDouble() * scale.toDouble(), i = input_scale.toDouble();
  Tensor slope = grad * grad_output * i;
  if (!is_result) slope = slope * at::exp(self_or_result * i) * (a * i);
  return keep_where(slope, at::le(self_or_result, 0));
}

// A row longer than maxnorm is multiplied by f = maxnorm / (norm + 1e-7), which depends on the row.
Tensor renorm_grad(const Tensor& grad, const Tensor& self, const Scalar& p, int64_t dim,
                   const Scalar& maxnorm) {
  const int64_t rank = self.dim(), kept = dim < 0 ? dim + rank : dim;
  c10::DimVector others;
  for (int64_t d = 0; d < rank; ++d)
    if (d != kept) others.push_back(d);
  const OptionalIntArrayRef dims{IntArrayRef(others)};
  const Tensor norm = at::linalg_vector_norm(self, p, dims, true);
  const Tensor longer = norm + 1e-7;
  const Tensor product = grad * cj(self);
  const Tensor along = at::sum(product.is_complex() ? at::real(product) : product, dims, true);
  const Tensor of_norm = norm_grad(along, self, norm, p, dims, true);
  const Tensor shortened = (grad - of_norm / longer) * maxnorm / longer;
  return at::where(at::gt(norm, maxnorm), shortened, grad);
}

std::tuple<Tensor, Tensor, Tensor> group_norm_grad(const TensorVec& grads, const Tensor& input,
                                                   const Tensor& mean, const Tensor& rstd,
                                                   const OptionalTensor& weight, int64_t n,
                                                   int64_t c, int64_t hxw, int64_t group,
                                                   std::array<bool, 3> mask) {
  std::tuple<Tensor, Tensor, Tensor> out;
  if (grads[0].defined())
    out =
        at::native_group_norm_backward(grads[0], input, mean, rstd, weight, n, c, hxw, group, mask);
  if (!mask[0]) return out;
  const int64_t count = c / group * hxw;
  auto add = [&](const Tensor& part) {
    Tensor& sum = std::get<0>(out);
    const Tensor whole = part.expand({n, group, count}).reshape(input.sizes());
    sum = sum.defined() ? sum + whole : whole;
  };
  if (grads[1].defined()) add(grads[1].reshape({n, group, 1}) / count);
  if (grads[2].defined()) {
    const Tensor r = rstd.reshape({n, group, 1});
    const Tensor centered = input.reshape({n, group, count}) - mean.reshape({n, group, 1});
    add(grads[2].reshape({n, group, 1}) * (centered * (r * r * r)) *
        (-1.0 / static_cast<double>(count)));
  }
  return out;
}

namespace {
// The gradient of each element's loss.
Tensor of_elements(const Tensor& grad, const Tensor& self, const OptionalTensor& weight,
                   int64_t reduction) {
  Tensor g = weight ? grad * *weight : grad;
  return reduction == 1 ? g / self.numel() : g;
}
} // namespace

Tensor bce_target_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& weight,
                       int64_t reduction) {
  const Tensor yes = at::clamp_min(at::log(self), -100),
               no = at::clamp_min(at::log(1 - self), -100);
  return of_elements(grad, self, weight, reduction) * (no - yes);
}

// loss = (1 - t) x + (1 + (pos_weight - 1) t) log(1 + exp(-x))
Tensor bce_with_logits_grad(const Tensor& grad, const Tensor& self, const Tensor& target,
                            const OptionalTensor& weight, const OptionalTensor& pos_weight,
                            int64_t reduction) {
  Tensor out;
  if (pos_weight) {
    const Tensor raised = *pos_weight * target;
    const Tensor factor = raised + 1 - target;
    out = (factor * at::sigmoid(self) - raised) * grad;
  } else {
    out = (at::sigmoid(self) - target) * grad;
  }
  if (weight) out = out * *weight;
  return reduction == 1 ? at::_ops::div__Scalar::call(out, self.numel()) : out;
}
Tensor bce_with_logits_target_grad(const Tensor& grad, const Tensor& self,
                                   const OptionalTensor& weight, const OptionalTensor& pos_weight,
                                   int64_t reduction) {
  const Tensor g = of_elements(grad, self, weight, reduction);
  if (!pos_weight) return -(g * self);
  return g * ((*pos_weight - 1) * at::softplus(-self) - self);
}

Tensor running_stats(const Tensor& statistics, bool training) {
  return training || !statistics.defined() ? Tensor() : at::clone(at::detach(statistics));
}
std::optional<Tensor> running_stats(const std::optional<Tensor>& statistics, bool training) {
  if (!statistics) return std::nullopt;
  return running_stats(*statistics, training);
}

} // namespace torch::autograd::generated
