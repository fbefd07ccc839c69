// Modules that are functions with options: activations, pooling, images and losses.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/loss.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/vision.h>

#include <torch/csrc/api/src/nn/describe.h>

namespace F = torch::nn::functional;

namespace torch::nn {

// ---- activations
Tensor ELUImpl::forward(const Tensor& input) { return F::elu(input, options); }
void ELUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "ELU")
      .add("alpha", options.alpha())
      .add_unless(false, "inplace", options.inplace());
}
Tensor SELUImpl::forward(const Tensor& input) { return F::selu(input, options); }
void SELUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "SELU").add_unless(false, "inplace", options.inplace());
}
Tensor HardshrinkImpl::forward(const Tensor& input) { return F::hardshrink(input, options); }
void HardshrinkImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Hardshrink").bare(options.lambda());
}
HardtanhImpl::HardtanhImpl(const HardtanhOptions& options_) : options(options_) { reset(); }
void HardtanhImpl::reset() {
  TORCH_CHECK(options.min_val() < options.max_val(), "max_val must be greater than min_val");
}
Tensor HardtanhImpl::forward(const Tensor& input) { return F::hardtanh(input, options); }
void HardtanhImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Hardtanh")
      .add("min_val", options.min_val())
      .add("max_val", options.max_val())
      .add_unless(false, "inplace", options.inplace());
}
Tensor LeakyReLUImpl::forward(const Tensor& input) { return F::leaky_relu(input, options); }
void LeakyReLUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "LeakyReLU")
      .add("negative_slope", options.negative_slope())
      .add_unless(false, "inplace", options.inplace());
}
Tensor SoftmaxImpl::forward(const Tensor& input) { return F::softmax(input, options.dim()); }
void SoftmaxImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Softmax").add("dim", options.dim());
}
Tensor SoftminImpl::forward(const Tensor& input) { return F::softmin(input, options.dim()); }
void SoftminImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Softmin").add("dim", options.dim());
}
Tensor LogSoftmaxImpl::forward(const Tensor& input) { return F::log_softmax(input, options.dim()); }
void LogSoftmaxImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "LogSoftmax").add("dim", options.dim());
}
Tensor ReLUImpl::forward(const Tensor& input) { return F::relu(input, options); }
void ReLUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "ReLU").add_unless(false, "inplace", options.inplace());
}
Tensor ReLU6Impl::forward(const Tensor& input) { return F::relu6(input, options); }
void ReLU6Impl::pretty_print(std::ostream& stream) const {
  Describe(stream, "ReLU6").add_unless(false, "inplace", options.inplace());
}
Tensor RReLUImpl::forward(const Tensor& input) {
  return F::rrelu(input, F::RReLUFuncOptions()
                             .lower(options.lower())
                             .upper(options.upper())
                             .training(is_training())
                             .inplace(options.inplace()));
}
void RReLUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "RReLU")
      .add("lower", options.lower())
      .add("upper", options.upper())
      .add_unless(false, "inplace", options.inplace());
}
Tensor CELUImpl::forward(const Tensor& input) { return F::celu(input, options); }
void CELUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "CELU")
      .add("alpha", options.alpha())
      .add_unless(false, "inplace", options.inplace());
}
Tensor GLUImpl::forward(const Tensor& input) { return F::glu(input, options); }
void GLUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "GLU").add("dim", options.dim());
}
Tensor GELUImpl::forward(const Tensor& input) { return F::gelu(input, options); }
void GELUImpl::pretty_print(std::ostream& stream) const { Describe(stream, "GELU"); }
Tensor SoftplusImpl::forward(const Tensor& input) { return F::softplus(input, options); }
void SoftplusImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Softplus").add("beta", options.beta()).add("threshold", options.threshold());
}
Tensor SoftshrinkImpl::forward(const Tensor& input) { return F::softshrink(input, options); }
void SoftshrinkImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Softshrink").bare(options.lambda());
}
Tensor ThresholdImpl::forward(const Tensor& input) { return F::threshold(input, options); }
void ThresholdImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Threshold")
      .add("threshold", options.threshold())
      .add("value", options.value())
      .add_unless(false, "inplace", options.inplace());
}
Tensor Softmax2dImpl::forward(const Tensor& input) {
  TORCH_CHECK(input.dim() == 4 || input.dim() == 3,
              "Softmax2d requires a 3D or 4D tensor as input");
  return F::softmax(input, F::SoftmaxFuncOptions(-3));
}
#define CRESSET_PLAIN(Name, expression)                                                            \
  Tensor Name##Impl::forward(const Tensor& input) { return expression; }                           \
  void Name##Impl::pretty_print(std::ostream& stream) const { Describe(stream, #Name); }
CRESSET_PLAIN(LogSigmoid, at::log_sigmoid(input))
CRESSET_PLAIN(SiLU, at::silu(input))
CRESSET_PLAIN(Mish, at::mish(input))
CRESSET_PLAIN(Sigmoid, at::sigmoid(input))
CRESSET_PLAIN(Softsign, F::softsign(input))
CRESSET_PLAIN(Tanh, at::tanh(input))
CRESSET_PLAIN(Tanhshrink, F::tanhshrink(input))
CRESSET_PLAIN(Identity, input)
#undef CRESSET_PLAIN
void Softmax2dImpl::pretty_print(std::ostream& stream) const { Describe(stream, "Softmax2d"); }

PReLUImpl::PReLUImpl(const PReLUOptions& options_) : options(options_) { reset(); }
void PReLUImpl::reset() {
  weight = register_parameter("weight", torch::full(options.num_parameters(), options.init()));
}
Tensor PReLUImpl::forward(const Tensor& input) { return F::prelu(input, weight); }
void PReLUImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "PReLU").add("num_parameters", options.num_parameters());
}

// ---- pooling
#define CRESSET_POOLS(D)                                                                           \
  Tensor AvgPool##D##dImpl::forward(const Tensor& input) {                                         \
    return F::avg_pool##D##d(input, options);                                                      \
  }                                                                                                \
  void AvgPool##D##dImpl::pretty_print(std::ostream& stream) const {                               \
    Describe(stream, "AvgPool" #D "d")                                                             \
        .add("kernel_size", options.kernel_size())                                                 \
        .add("stride", options.stride())                                                           \
        .add("padding", options.padding());                                                        \
  }                                                                                                \
  Tensor MaxPool##D##dImpl::forward(const Tensor& input) {                                         \
    return F::max_pool##D##d(input, options);                                                      \
  }                                                                                                \
  std::tuple<Tensor, Tensor> MaxPool##D##dImpl::forward_with_indices(const Tensor& input) {        \
    return F::max_pool##D##d_with_indices(input, options);                                         \
  }                                                                                                \
  void MaxPool##D##dImpl::pretty_print(std::ostream& stream) const {                               \
    Describe(stream, "MaxPool" #D "d")                                                             \
        .add("kernel_size", options.kernel_size())                                                 \
        .add("stride", options.stride())                                                           \
        .add("padding", options.padding())                                                         \
        .add("dilation", options.dilation())                                                       \
        .add("ceil_mode", options.ceil_mode());                                                    \
  }                                                                                                \
  Tensor AdaptiveAvgPool##D##dImpl::forward(const Tensor& input) {                                 \
    return F::adaptive_avg_pool##D##d(input, options);                                             \
  }                                                                                                \
  void AdaptiveAvgPool##D##dImpl::pretty_print(std::ostream& stream) const {                       \
    Describe(stream, "AdaptiveAvgPool" #D "d").add("output_size", options.output_size());          \
  }                                                                                                \
  Tensor AdaptiveMaxPool##D##dImpl::forward(const Tensor& input) {                                 \
    return F::adaptive_max_pool##D##d(input, options);                                             \
  }                                                                                                \
  std::tuple<Tensor, Tensor> AdaptiveMaxPool##D##dImpl::forward_with_indices(                      \
      const Tensor& input) {                                                                       \
    return F::adaptive_max_pool##D##d_with_indices(input, options);                                \
  }                                                                                                \
  void AdaptiveMaxPool##D##dImpl::pretty_print(std::ostream& stream) const {                       \
    Describe(stream, "AdaptiveMaxPool" #D "d").add("output_size", options.output_size());          \
  }                                                                                                \
  Tensor MaxUnpool##D##dImpl::forward(const Tensor& input, const Tensor& indices,                  \
                                      const std::optional<std::vector<int64_t>>& output_size) {    \
    return F::max_unpool##D##d(input, indices,                                                     \
                               F::MaxUnpool##D##dFuncOptions(options.kernel_size())                \
                                   .stride(options.stride())                                       \
                                   .padding(options.padding())                                     \
                                   .output_size(output_size));                                     \
  }                                                                                                \
  void MaxUnpool##D##dImpl::pretty_print(std::ostream& stream) const {                             \
    Describe(stream, "MaxUnpool" #D "d")                                                           \
        .add("kernel_size", options.kernel_size())                                                 \
        .add("stride", options.stride())                                                           \
        .add("padding", options.padding());                                                        \
  }                                                                                                \
  Tensor LPPool##D##dImpl::forward(const Tensor& input) {                                          \
    return F::lp_pool##D##d(input, options);                                                       \
  }                                                                                                \
  void LPPool##D##dImpl::pretty_print(std::ostream& stream) const {                                \
    Describe(stream, "LPPool" #D "d")                                                              \
        .add("norm_type", options.norm_type())                                                     \
        .add("kernel_size", options.kernel_size())                                                 \
        .add("stride", options.stride())                                                           \
        .add("ceil_mode", options.ceil_mode());                                                    \
  }
CRESSET_POOLS(1)
CRESSET_POOLS(2)
CRESSET_POOLS(3)
#undef CRESSET_POOLS

#define CRESSET_FRACTIONAL(D)                                                                      \
  FractionalMaxPool##D##dImpl::FractionalMaxPool##D##dImpl(                                        \
      FractionalMaxPool##D##dOptions options_)                                                     \
      : options(std::move(options_)) {                                                             \
    reset();                                                                                       \
  }                                                                                                \
  void FractionalMaxPool##D##dImpl::reset() {                                                      \
    _random_samples = register_buffer("_random_samples", options._random_samples());               \
    const bool both = options.output_size() && options.output_ratio();                             \
    TORCH_CHECK(options.output_size() || options.output_ratio(),                                   \
                "FractionalMaxPool" #D "d requires specifying either an output size, or a "        \
                "pooling ratio");                                                                  \
    TORCH_CHECK(!both, "only one of output_size and output_ratio may be specified");               \
    if (options.output_ratio())                                                                    \
      for (const double ratio : **options.output_ratio())                                          \
        TORCH_CHECK(ratio > 0 && ratio < 1, "output_ratio must be between 0 and 1 (got ",          \
                    c10::ArrayRef<double>(**options.output_ratio()), ")");                         \
  }                                                                                                \
  Tensor FractionalMaxPool##D##dImpl::forward(const Tensor& input) {                               \
    return F::fractional_max_pool##D##d(input, options);                                           \
  }                                                                                                \
  std::tuple<Tensor, Tensor> FractionalMaxPool##D##dImpl::forward_with_indices(                    \
      const Tensor& input) {                                                                       \
    return F::fractional_max_pool##D##d_with_indices(input, options);                              \
  }                                                                                                \
  void FractionalMaxPool##D##dImpl::pretty_print(std::ostream& stream) const {                     \
    Describe(stream, "FractionalMaxPool" #D "d");                                                  \
  }
CRESSET_FRACTIONAL(2)
CRESSET_FRACTIONAL(3)
#undef CRESSET_FRACTIONAL

// ---- images
namespace {
template <class Options> Tensor padded(const Tensor& input, const Options& options,
                                       F::PadFuncOptions::mode_t mode, double value = 0) {
  const std::vector<int64_t> pad(options.padding()->begin(), options.padding()->end());
  return F::pad(input, F::PadFuncOptions(pad).mode(mode).value(value));
}
} // namespace
#define CRESSET_PADS(D)                                                                            \
  Tensor ReflectionPad##D##dImpl::forward(const Tensor& input) {                                   \
    return padded(input, options, torch::kReflect);                                                \
  }                                                                                                \
  void ReflectionPad##D##dImpl::pretty_print(std::ostream& stream) const {                         \
    Describe(stream, "ReflectionPad" #D "d").add("padding", options.padding());                    \
  }                                                                                                \
  Tensor ReplicationPad##D##dImpl::forward(const Tensor& input) {                                  \
    return padded(input, options, torch::kReplicate);                                              \
  }                                                                                                \
  void ReplicationPad##D##dImpl::pretty_print(std::ostream& stream) const {                        \
    Describe(stream, "ReplicationPad" #D "d").add("padding", options.padding());                   \
  }                                                                                                \
  Tensor ZeroPad##D##dImpl::forward(const Tensor& input) {                                         \
    return padded(input, options, torch::kConstant);                                               \
  }                                                                                                \
  void ZeroPad##D##dImpl::pretty_print(std::ostream& stream) const {                               \
    Describe(stream, "ZeroPad" #D "d").add("padding", options.padding());                          \
  }                                                                                                \
  Tensor ConstantPad##D##dImpl::forward(const Tensor& input) {                                     \
    return padded(input, options, torch::kConstant, options.value());                              \
  }                                                                                                \
  void ConstantPad##D##dImpl::pretty_print(std::ostream& stream) const {                           \
    Describe(stream, "ConstantPad" #D "d")                                                         \
        .add("padding", options.padding())                                                         \
        .add("value", options.value());                                                            \
  }
CRESSET_PADS(1)
CRESSET_PADS(2)
CRESSET_PADS(3)
#undef CRESSET_PADS

Tensor UpsampleImpl::forward(const Tensor& input) {
  F::InterpolateFuncOptions::mode_t mode =
      std::visit([](auto name) { return F::InterpolateFuncOptions::mode_t(name); }, options.mode());
  return F::interpolate(input, F::InterpolateFuncOptions()
                                   .size(options.size())
                                   .scale_factor(options.scale_factor())
                                   .mode(mode)
                                   .align_corners(options.align_corners()));
}
void UpsampleImpl::pretty_print(std::ostream& stream) const {
  Describe text(stream, "Upsample");
  if (options.scale_factor())
    text.add("scale_factor", *options.scale_factor());
  else if (options.size())
    text.add("size", *options.size());
  text.add("mode", options.mode());
}
Tensor PixelShuffleImpl::forward(const Tensor& input) { return F::pixel_shuffle(input, options); }
void PixelShuffleImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "PixelShuffle").add("upscale_factor", options.upscale_factor());
}
Tensor PixelUnshuffleImpl::forward(const Tensor& input) {
  return F::pixel_unshuffle(input, options);
}
void PixelUnshuffleImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "PixelUnshuffle").add("downscale_factor", options.downscale_factor());
}
Tensor FoldImpl::forward(const Tensor& input) { return F::fold(input, options); }
void FoldImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Fold")
      .add("output_size", options.output_size())
      .add("kernel_size", options.kernel_size())
      .add("dilation", options.dilation())
      .add("padding", options.padding())
      .add("stride", options.stride());
}
Tensor UnfoldImpl::forward(const Tensor& input) { return F::unfold(input, options); }
void UnfoldImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Unfold")
      .add("kernel_size", options.kernel_size())
      .add("dilation", options.dilation())
      .add("padding", options.padding())
      .add("stride", options.stride());
}

// ---- losses
#define CRESSET_LOSS(Name, function)                                                               \
  void Name##Impl::reset() {}                                                                      \
  void Name##Impl::pretty_print(std::ostream& stream) const { Describe(stream, #Name); }           \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {                          \
    return F::function(input, target, options);                                                    \
  }
// A weight is kept as a buffer, so that it moves with the module.
#define CRESSET_WEIGHTED_LOSS(Name, function)                                                      \
  void Name##Impl::reset() { options.weight() = register_buffer("weight", options.weight()); }     \
  void Name##Impl::pretty_print(std::ostream& stream) const { Describe(stream, #Name); }           \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {                          \
    return F::function(input, target, options);                                                    \
  }
#define CRESSET_LOSS_OF_THREE(Name, function)                                                      \
  void Name##Impl::reset() {}                                                                      \
  Tensor Name##Impl::forward(const Tensor& a, const Tensor& b, const Tensor& c) {                  \
    return F::function(a, b, c, options);                                                          \
  }
CRESSET_LOSS(L1Loss, l1_loss)
CRESSET_LOSS(KLDivLoss, kl_div)
CRESSET_LOSS(MSELoss, mse_loss)
CRESSET_LOSS(SmoothL1Loss, smooth_l1_loss)
CRESSET_LOSS(MultiLabelMarginLoss, multilabel_margin_loss)
CRESSET_LOSS(SoftMarginLoss, soft_margin_loss)
CRESSET_LOSS(PoissonNLLLoss, poisson_nll_loss)
CRESSET_LOSS(HuberLoss, huber_loss)
CRESSET_WEIGHTED_LOSS(BCELoss, binary_cross_entropy)
CRESSET_WEIGHTED_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss)
CRESSET_WEIGHTED_LOSS(NLLLoss, nll_loss)
CRESSET_WEIGHTED_LOSS(CrossEntropyLoss, cross_entropy)
CRESSET_LOSS_OF_THREE(CosineEmbeddingLoss, cosine_embedding_loss)
CRESSET_LOSS_OF_THREE(TripletMarginLoss, triplet_margin_loss)
CRESSET_LOSS_OF_THREE(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss)
CRESSET_LOSS_OF_THREE(MarginRankingLoss, margin_ranking_loss)
#undef CRESSET_LOSS
#undef CRESSET_WEIGHTED_LOSS
#undef CRESSET_LOSS_OF_THREE

void HingeEmbeddingLossImpl::reset() {}
Tensor HingeEmbeddingLossImpl::forward(const Tensor& input, const Tensor& target) {
  return F::hinge_embedding_loss(input, target, options);
}
void HingeEmbeddingLossImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "HingeEmbeddingLoss").add("margin", options.margin());
}
void MultiMarginLossImpl::reset() {
  TORCH_CHECK(options.p() == 1 || options.p() == 2, "only p == 1 and p == 2 supported");
  TORCH_CHECK(!options.weight().defined() || options.weight().dim() == 1,
              "weight must be one-dimensional");
  options.weight() = register_buffer("weight", options.weight());
}
Tensor MultiMarginLossImpl::forward(const Tensor& input, const Tensor& target) {
  return F::multi_margin_loss(input, target, options);
}
void MultiMarginLossImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "MultiMarginLoss")
      .add("p", options.p())
      .add("margin", options.margin())
      .add_if(options.weight().defined(), "weight", "given")
      .add("reduction", options.reduction());
}
void CosineEmbeddingLossImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "CosineEmbeddingLoss").add("margin", options.margin());
}
void TripletMarginLossImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "TripletMarginLoss")
      .add("margin", options.margin())
      .add("p", options.p())
      .add("eps", options.eps())
      .add("swap", options.swap());
}
void TripletMarginWithDistanceLossImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "TripletMarginWithDistanceLoss")
      .add("margin", options.margin())
      .add("swap", options.swap());
}
void MarginRankingLossImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "MarginRankingLoss");
}
void CTCLossImpl::reset() {}
Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets,
                            const Tensor& input_lengths, const Tensor& target_lengths) {
  return F::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}
void CTCLossImpl::pretty_print(std::ostream& stream) const { Describe(stream, "CTCLoss"); }
void BCEWithLogitsLossImpl::reset() {
  options.weight() = register_buffer("weight", options.weight());
  options.pos_weight() = register_buffer("pos_weight", options.pos_weight());
}
Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  return F::binary_cross_entropy_with_logits(input, target, options);
}
void BCEWithLogitsLossImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "BCEWithLogitsLoss");
}

} // namespace torch::nn
