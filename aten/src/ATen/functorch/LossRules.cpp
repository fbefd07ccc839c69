// Batching rules of losses: element by element without a reduction, which then goes over the sample
// only. Class losses pick the score of the target with gather.
#include <ATen/functorch/BatchRule.h>

#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>

namespace at::functorch {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == kNone) return loss;
  return reduction == kMean ? at::mean(loss) : at::sum(loss);
}

// Both in the shape of a sample with its batch: losses do not broadcast.
void same_shape(Call& call, size_t a, size_t b) {
  if (call.tensor(a).sizes() != call.tensor(b).sizes()) return;
  for (const size_t k : {a, b}) call.args[k] = IValue(call.wrap(call.expanded(call.tensor(k))));
}

void loss_rule(Call& call) {
  same_shape(call, 0, 1);
  const int at = call.find("reduction");
  const int64_t reduction = call.args[at].toInt();
  call.args[at] = IValue(int64_t(kNone));
  pointwise_rule(call);
  call.results[0] = IValue(reduced(call.results[0].toTensor(), reduction));
}

// The gradient of a mean is that of each element divided by their number. Without a reduction the
// gradient has the shape of the loss, and the second derivative relies on it.
void loss_backward_rule(Call& call) {
  same_shape(call, 1, 2);
  const int at = call.find("reduction");
  const int64_t reduction = call.args[at].toInt();
  const Tensor self = call.tensor(1);
  Tensor grad = call.tensor(0);
  if (reduction == kMean) grad = at::div(grad, Scalar(std::max<int64_t>(self.numel(), 1)));
  if (self.sizes() == call.tensor(2).sizes() && grad.sizes() != self.sizes())
    grad = grad.expand(self.sizes());
  call.args[0] = IValue(grad);
  call.args[at] = IValue(int64_t(kNone));
  pointwise_rule(call);
}

// ---- class losses
// Scores have the classes in dimension 1, or 0 for a single example; targets lack it.
struct Picked {
  int64_t dim;
  Tensor index;  // targets with the ignored ones replaced, in the rank of the scores
  Tensor weight; // of each target; zero where ignored
};

Picked pick(const Tensor& scores, const Tensor& target, const std::optional<Tensor>& weight,
            int64_t ignored) {
  Picked p;
  p.dim = scores.dim() == 1 ? 0 : 1;
  const Tensor skip = at::eq(target, Scalar(ignored));
  const Tensor safe = at::masked_fill(target, skip, 0);
  p.index = safe.unsqueeze(p.dim);
  Tensor each;
  if (weight && weight->defined()) {
    // The operator has no gradient at its weights.
    const Tensor fixed = weight->detach();
    each = at::index_select(fixed, 0, safe.reshape({safe.numel()})).reshape(safe.sizes());
  } else {
    each = at::ones_like(safe, scores.scalar_type(), std::nullopt, std::nullopt, std::nullopt,
                         std::nullopt);
  }
  p.weight = at::masked_fill(each, skip, 0);
  return p;
}

void nll_rule(Call& call) {
  const Tensor scores = call.tensor(0);
  const int64_t reduction = call.args[3].toInt();
  const Picked p = pick(scores, call.tensor(1), call.optional(2), call.args[4].toInt());
  const Tensor loss = at::neg(at::mul(at::gather(scores, p.dim, p.index).squeeze(p.dim), p.weight));
  const Tensor total = at::sum(p.weight);
  if (reduction == kNone) {
    call.give_batched(loss);
  } else {
    const Tensor sum = at::sum(loss);
    call.give_batched(reduction == kMean ? at::div(sum, total) : sum);
  }
  call.give_batched(total);
}

void nll_backward_rule(Call& call) {
  Tensor grad = call.tensor(0);
  const Tensor scores = call.tensor(1);
  const int64_t reduction = call.args[4].toInt();
  const Picked p = pick(scores, call.tensor(2), call.optional(3), call.args[5].toInt());
  if (reduction == kMean) grad = at::div(grad, call.tensor(6));
  const Tensor each = at::neg(at::mul(p.weight, grad)).unsqueeze(p.dim);
  call.give_batched(at::scatter(at::zeros_like(scores), p.dim, p.index, each));
}
} // namespace

ArrayRef<RuleEntry> loss_rules() {
  static const RuleEntry entries[] = {
      {"mse_loss smooth_l1_loss huber_loss soft_margin_loss binary_cross_entropy "
       "binary_cross_entropy_with_logits",
       loss_rule, 0},
      {"mse_loss_backward smooth_l1_loss_backward huber_loss_backward soft_margin_loss_backward "
       "binary_cross_entropy_backward",
       loss_backward_rule, 0},
      {"nll_loss_forward nll_loss2d_forward", nll_rule, 0},
      {"nll_loss_backward nll_loss2d_backward", nll_backward_rule, 0},
  };
  return entries;
}

} // namespace at::functorch
