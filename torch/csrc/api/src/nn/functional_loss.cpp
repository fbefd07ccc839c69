// torch::nn::functional: losses.
#include <torch/nn/functional/loss.h>
#include <torch/nn/functional/normalization.h>

#include <torch/csrc/api/src/nn/maybe.h>

namespace torch::nn::functional {
namespace {

using enumtype::reduction_get_enum;

// Losses of equal shapes warn where broadcasting decides.
void check_shapes(const Tensor& input, const Tensor& target) {
  if (target.sizes() != input.sizes())
    TORCH_WARN("Using a target size (", target.sizes(), ") that is different to the input size (",
               input.sizes(),
               "). This will likely lead to incorrect results due to broadcasting. Please ensure "
               "they have the same size.");
}

Tensor reduced(const Tensor& loss, const LossReduction& reduction) {
  if (std::holds_alternative<enumtype::kNone>(reduction)) return loss;
  return std::holds_alternative<enumtype::kSum>(reduction) ? loss.sum() : loss.mean();
}

} // namespace

Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options) {
  check_shapes(input, target);
  const std::vector<Tensor> both = at::broadcast_tensors({input, target});
  return at::l1_loss(both[0], both[1], reduction_get_enum(options.reduction()));
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options) {
  const std::string name = enumtype::get_enum_name(options.reduction());
  if (name == "kMean")
    TORCH_WARN("reduction: 'mean' divides the total loss by both the batch size and the support "
               "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
               "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
               "major release.");
  const int64_t reduction = name == "kNone" ? 0 : name == "kMean" ? 1 : 2;
  const Tensor loss = at::kl_div(input, target, reduction, options.log_target());
  return name == "kBatchMean" && input.dim() != 0 ? loss / input.size(0) : loss;
}

Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options) {
  check_shapes(input, target);
  const std::vector<Tensor> both = at::broadcast_tensors({input, target});
  return at::mse_loss(both[0], both[1], reduction_get_enum(options.reduction()));
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options) {
  if (target.sizes() != input.sizes())
    TORCH_WARN("Using a target size (", target.sizes(), ") that is different to the input size (",
               input.sizes(), ") is deprecated. ", "Please ensure they have the same size.");
  TORCH_CHECK(input.numel() == target.numel(),
              "Target and input must have the same number of "
              "elements. target nelement (",
              target.numel(), ") != input nelement (", input.numel(), ")");
  Tensor weight = options.weight();
  if (weight.defined()) weight = at::broadcast_tensors({target, weight})[1];
  return at::binary_cross_entropy(input, target, maybe(weight),
                                  reduction_get_enum(options.reduction()));
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& options) {
  return at::hinge_embedding_loss(input, target, options.margin(),
                                  reduction_get_enum(options.reduction()));
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossFuncOptions& options) {
  TORCH_CHECK(options.p() == 1 || options.p() == 2, "only p == 1 and p == 2 supported");
  TORCH_CHECK(!options.weight().defined() || options.weight().dim() == 1,
              "weight must be one-dimensional");
  return at::multi_margin_loss(input, target, options.p(), options.margin(),
                               maybe(options.weight()), reduction_get_enum(options.reduction()));
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& options) {
  return at::cosine_embedding_loss(input1, input2, target, options.margin(),
                                   reduction_get_enum(options.reduction()));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      const SmoothL1LossFuncOptions& options) {
  check_shapes(input, target);
  const std::vector<Tensor> both = at::broadcast_tensors({input, target});
  return at::smooth_l1_loss(both[0], both[1], reduction_get_enum(options.reduction()),
                            options.beta().value_or(1.0));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      const SmoothL1LossFuncOptions& options, double beta) {
  TORCH_CHECK(!options.beta(), "expected beta not to be provided in 'options', but got ",
              options.beta().value_or(0));
  SmoothL1LossFuncOptions with_beta = options;
  return smooth_l1_loss(input, target, with_beta.beta(beta));
}
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options) {
  check_shapes(input, target);
  const std::vector<Tensor> both = at::broadcast_tensors({input, target});
  return at::huber_loss(both[0], both[1], reduction_get_enum(options.reduction()), options.delta());
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& options) {
  return at::multilabel_margin_loss(input, target, reduction_get_enum(options.reduction()));
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        const SoftMarginLossFuncOptions& options) {
  return at::soft_margin_loss(input, target, reduction_get_enum(options.reduction()));
}
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& options) {
  Tensor loss = -(target * at::log_sigmoid(input) + (1 - target) * at::log_sigmoid(-input));
  if (options.weight().defined()) loss = loss * options.weight();
  return reduced(loss.sum(-1) / loss.size(-1), options.reduction());
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options) {
  return at::triplet_margin_loss(anchor, positive, negative, options.margin(), options.p(),
                                 options.eps(), options.swap(),
                                 reduction_get_enum(options.reduction()));
}
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& options) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return options.distance_function() ? (*options.distance_function())(a, b)
                                       : functional::pairwise_distance(a, b, {});
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (options.swap()) far = at::min(far, distance(positive, negative));
  return reduced(at::clamp_min(near - far + options.margin(), 0), options.reduction());
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& options) {
  return at::ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank(),
                      reduction_get_enum(options.reduction()), options.zero_infinity());
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNLLLossFuncOptions& options) {
  return at::poisson_nll_loss(input, target, options.log_input(), options.full(), options.eps(),
                              reduction_get_enum(options.reduction()));
}
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& options) {
  const int64_t rank = input1.dim();
  const bool same_rank = input2.dim() == rank && target.dim() == rank;
  TORCH_CHECK(same_rank,
              "margin_ranking_loss : All input tensors should have same dimension but "
              "got sizes: ",
              input1.sizes(), ", ", input2.sizes(), " and target ", target.sizes());
  const int64_t reduction = reduction_get_enum(options.reduction());
  return at::margin_ranking_loss(input1, input2, target, options.margin(), reduction);
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options) {
  TORCH_CHECK(input.dim() >= 2, "Expected 2 or more dimensions (got ", input.dim(), ")");
  TORCH_CHECK(input.size(0) == target.size(0), "Expected input batch_size (", input.size(0),
              ") to match target batch_size (", target.size(0), ").");
  return at::nll_loss_nd(input, target, maybe(options.weight()),
                         reduction_get_enum(options.reduction()), options.ignore_index());
}
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyFuncOptions& options) {
  return at::cross_entropy_loss(input, target, maybe(options.weight()),
                                reduction_get_enum(options.reduction()), options.ignore_index(),
                                options.label_smoothing());
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options) {
  TORCH_CHECK(target.sizes() == input.sizes(), "Target size (", target.sizes(),
              ") must be the same as input size (", input.sizes(), ")");
  return at::binary_cross_entropy_with_logits(input, target, maybe(options.weight()),
                                              maybe(options.pos_weight()),
                                              reduction_get_enum(options.reduction()));
}

} // namespace torch::nn::functional
