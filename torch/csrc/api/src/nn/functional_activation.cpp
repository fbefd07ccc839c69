// torch::nn::functional: activations, dropout, normalisations and distances.
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/normalization.h>
#include <torch/nn/functional/vision.h>

#include <torch/csrc/api/src/nn/maybe.h>

namespace torch::nn::functional {

Tensor elu(Tensor input, const ELUFuncOptions& options) {
  return options.inplace() ? at::elu_(input, options.alpha()) : at::elu(input, options.alpha());
}
Tensor selu(Tensor input, const SELUFuncOptions& options) {
  return options.inplace() ? at::selu_(input) : at::selu(input);
}
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options) {
  return at::hardshrink(input, options.lambda());
}
Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options) {
  return options.inplace() ? at::hardtanh_(input, options.min_val(), options.max_val())
                           : at::hardtanh(input, options.min_val(), options.max_val());
}
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options) {
  return options.inplace() ? at::leaky_relu_(input, options.negative_slope())
                           : at::leaky_relu(input, options.negative_slope());
}
Tensor logsigmoid(const Tensor& input) { return at::log_sigmoid(input); }

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options) {
  // Minus the logarithm of an exponential variable has the Gumbel distribution.
  const Tensor noise = -at::empty_like(logits).exponential_().log();
  const Tensor soft = ((logits + noise) / options.tau()).softmax(options.dim());
  if (!options.hard()) return soft;
  const Tensor index = std::get<1>(soft.max(options.dim(), true));
  const Tensor hard = at::zeros_like(logits).scatter_(options.dim(), index, 1.0);
  // One-hot in the forward pass, with the gradient of the soft sample.
  return hard - soft.detach() + soft;
}

Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options) {
  return at::softmax(input, options.dim(), options.dtype());
}
Tensor softmin(const Tensor& input, const SoftminFuncOptions& options) {
  return at::softmax(-input, options.dim(), options.dtype());
}
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options) {
  return at::log_softmax(input, options.dim(), options.dtype());
}
Tensor glu(const Tensor& input, const GLUFuncOptions& options) {
  TORCH_CHECK(input.dim() != 0, "glu does not support scalars because halving size must be even");
  return at::glu(input, options.dim());
}
Tensor gelu(const Tensor& input, const GELUFuncOptions& options) {
  return at::gelu(input, options.approximate());
}
Tensor silu(const Tensor& input) { return at::silu(input); }
Tensor mish(const Tensor& input) { return at::mish(input); }
Tensor relu(Tensor input, const ReLUFuncOptions& options) {
  return options.inplace() ? at::relu_(input) : at::relu(input);
}
Tensor relu6(Tensor input, const ReLU6FuncOptions& options) {
  return options.inplace() ? at::relu6_(input) : at::relu6(input);
}
Tensor rrelu(Tensor input, const RReLUFuncOptions& options) {
  return options.inplace() ? at::rrelu_(input, options.lower(), options.upper(), options.training())
                           : at::rrelu(input, options.lower(), options.upper(), options.training());
}
Tensor celu(Tensor input, const CELUFuncOptions& options) {
  return options.inplace() ? at::celu_(input, options.alpha()) : at::celu(input, options.alpha());
}
Tensor prelu(const Tensor& input, const Tensor& weight) { return at::prelu(input, weight); }
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options) {
  return at::softplus(input, options.beta(), options.threshold());
}
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options) {
  return at::softshrink(input, options.lambda());
}
Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
Tensor threshold(Tensor input, const ThresholdFuncOptions& options) {
  return options.inplace() ? at::threshold_(input, options.threshold(), options.value())
                           : at::threshold(input, options.threshold(), options.value());
}

// ---- dropout
namespace {
void check_probability(double p) {
  TORCH_CHECK(p >= 0. && p <= 1., "dropout probability has to be between 0 and 1, but got ", p);
}
} // namespace

Tensor dropout(Tensor input, const DropoutFuncOptions& options) {
  check_probability(options.p());
  return options.inplace() ? at::dropout_(input, options.p(), options.training())
                           : at::dropout(input, options.p(), options.training());
}
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options) {
  check_probability(options.p());
  return options.inplace() ? at::feature_dropout_(input, options.p(), options.training())
                           : at::feature_dropout(input, options.p(), options.training());
}
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options) {
  return dropout2d(std::move(input), options);
}
Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options) {
  check_probability(options.p());
  return options.inplace() ? at::alpha_dropout_(input, options.p(), options.training())
                           : at::alpha_dropout(input, options.p(), options.training());
}
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options) {
  check_probability(options.p());
  return options.inplace() ? at::feature_alpha_dropout_(input, options.p(), options.training())
                           : at::feature_alpha_dropout(input, options.p(), options.training());
}

// ---- normalisations
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options) {
  if (options.training()) {
    TORCH_CHECK_VALUE(input.dim() >= 2, "Expected at least 2 dimensions, got ", input.dim());
    TORCH_CHECK_VALUE(input.numel() != input.size(1),
                      "Expected more than 1 value per channel when training, got input size ",
                      input.sizes());
  }
  TORCH_CHECK(options.momentum(), "batch_norm: momentum must be given");
  return at::batch_norm(input, maybe(options.weight()), maybe(options.bias()), maybe(running_mean),
                        maybe(running_var), options.training(), *options.momentum(), options.eps(),
                        true);
}
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options) {
  return at::instance_norm(input, maybe(options.weight()), maybe(options.bias()),
                           maybe(options.running_mean()), maybe(options.running_var()),
                           options.use_input_stats(), options.momentum(), options.eps(), true);
}
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options) {
  return at::layer_norm(input, options.normalized_shape(), maybe(options.weight()),
                        maybe(options.bias()), options.eps());
}
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options) {
  return at::group_norm(input, options.num_groups(), maybe(options.weight()), maybe(options.bias()),
                        options.eps());
}

Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options) {
  TORCH_CHECK(input.dim() >= 2, "Expected 3D or higher dimensionality input (got ", input.dim(),
              " dimensions)");
  // The mean of squares over `size` neighbouring channels: a pool along the second dimension of
  // the input seen as [batch, 1, channels, rest].
  const int64_t size = options.size();
  const Tensor squares = input.mul(input).reshape({input.size(0), 1, input.size(1), -1});
  const Tensor padded = at::constant_pad_nd(squares, {0, 0, size / 2, (size - 1) / 2});
  const Tensor mean = at::avg_pool2d(padded, {size, 1}, {1, 1}).reshape(input.sizes());
  return input / (mean * options.alpha() + options.k()).pow(options.beta());
}

Tensor normalize(const Tensor& input, NormalizeFuncOptions options) {
  const Tensor length =
      input.norm(options.p(), {options.dim()}, true).clamp_min(options.eps()).expand_as(input);
  if (!options.out()) return input / length;
  return at::div_out(*options.out(), input, length);
}

// ---- distances
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                         const CosineSimilarityFuncOptions& options) {
  return at::cosine_similarity(x1, x2, options.dim(), options.eps());
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                         const PairwiseDistanceFuncOptions& options) {
  return at::pairwise_distance(x1, x2, options.p(), options.eps(), options.keepdim());
}
Tensor pdist(const Tensor& input, double p) { return at::pdist(input, p); }

} // namespace torch::nn::functional
