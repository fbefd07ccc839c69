// Modules with parameters: linear layers, convolutions, embeddings and normalisations; dropout and
// distances.
#include <torch/nn/functional/vision.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <cmath>

#include <torch/csrc/api/src/nn/describe.h>

namespace F = torch::nn::functional;

namespace torch::nn {
namespace {
// A weight of a linear layer or convolution, and a bias of the same scale.
void reset_weight_and_bias(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5));
  if (!bias.defined()) return;
  const int64_t fan_in = std::get<0>(init::_calculate_fan_in_and_fan_out(weight));
  const double bound = fan_in > 0 ? 1 / std::sqrt(double(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}
} // namespace

// ---- linear
LinearImpl::LinearImpl(const LinearOptions& options_) : options(options_) { reset(); }
void LinearImpl::reset() {
  weight =
      register_parameter("weight", torch::empty({options.out_features(), options.in_features()}));
  bias = options.bias() ? register_parameter("bias", torch::empty(options.out_features()))
                        : register_parameter("bias", {}, /*requires_grad=*/false);
  reset_parameters();
}
void LinearImpl::reset_parameters() { reset_weight_and_bias(weight, bias); }
Tensor LinearImpl::forward(const Tensor& input) { return F::linear(input, weight, bias); }
void LinearImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Linear")
      .add("in_features", options.in_features())
      .add("out_features", options.out_features())
      .add("bias", options.bias());
}

Tensor FlattenImpl::forward(const Tensor& input) {
  return input.flatten(options.start_dim(), options.end_dim());
}
void FlattenImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Flatten")
      .add("start_dim", options.start_dim())
      .add("end_dim", options.end_dim());
}
Tensor UnflattenImpl::forward(const Tensor& input) {
  TORCH_CHECK_NOT_IMPLEMENTED(options.namedshape().empty(),
                              "Unflatten: dimensions with names are not implemented");
  return input.unflatten(options.dim(), options.sizes());
}
void UnflattenImpl::pretty_print(std::ostream& stream) const {
  const auto& named = options.namedshape();
  if (!named.empty()) {
    stream << "torch::nn::Unflatten(dim=\"" << options.dimname() << "\", unflattened_size={";
    for (size_t i = 0; i < named.size(); ++i)
      stream << (i ? ", " : "") << "{\"" << named[i].first << "\", " << named[i].second << "}";
    stream << "})";
    return;
  }
  stream << "torch::nn::Unflatten(dim=" << options.dim() << ", unflattened_size={";
  for (size_t i = 0; i < options.sizes().size(); ++i)
    stream << (i ? ", " : "") << options.sizes()[i];
  stream << "})";
}

BilinearImpl::BilinearImpl(const BilinearOptions& options_) : options(options_) { reset(); }
void BilinearImpl::reset() {
  weight = register_parameter(
      "weight",
      torch::empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = options.bias() ? register_parameter("bias", torch::empty(options.out_features()))
                        : register_parameter("bias", {}, /*requires_grad=*/false);
  reset_parameters();
}
void BilinearImpl::reset_parameters() {
  const double bound = 1.0 / std::sqrt(double(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}
Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return F::bilinear(input1, input2, weight, bias);
}
void BilinearImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "Bilinear")
      .add("in1_features", options.in1_features())
      .add("in2_features", options.in2_features())
      .add("out_features", options.out_features())
      .add("bias", options.bias());
}

// ---- convolutions
namespace {
template <class Options> constexpr bool is_transposed = false;
template <size_t D> constexpr bool is_transposed<ConvTransposeOptions<D>> = true;

// Zeros on both sides for 'same'; the second side gets the odd one.
template <size_t D> std::vector<int64_t> padding_amounts(const ConvOptions<D>& o) {
  std::vector<int64_t> out(2 * D, 0);
  if (const auto* numbers = std::get_if<ExpandingArray<D>>(&o.padding())) {
    for (size_t d = 0; d < D; ++d) out[2 * (D - 1 - d)] = out[2 * (D - 1 - d) + 1] = (**numbers)[d];
  } else if (std::holds_alternative<enumtype::kSame>(o.padding())) {
    for (size_t d = 0; d < D; ++d) {
      const int64_t total = (*o.dilation())[d] * ((*o.kernel_size())[d] - 1);
      out[2 * (D - 1 - d)] = total / 2;
      out[2 * (D - 1 - d) + 1] = total - total / 2;
    }
  }
  return out;
}
template <size_t D> std::vector<int64_t> padding_amounts(const ConvTransposeOptions<D>& o) {
  std::vector<int64_t> out;
  for (size_t d = D; d-- > 0;) out.insert(out.end(), 2, (*o.padding())[d]);
  return out;
}
template <size_t D> void check_padding_name(const ConvOptions<D>& o) {
  if (!std::holds_alternative<enumtype::kSame>(o.padding())) return;
  for (const int64_t stride : *o.stride())
    TORCH_CHECK(stride == 1, "padding='same' is not supported for strided convolutions");
}
template <size_t D> void check_padding_name(const ConvTransposeOptions<D>&) {}
} // namespace

template <size_t D, class Derived, class Options> void ConvNdImpl<D, Derived, Options>::reset() {
  const int64_t in = options.in_channels(), out = options.out_channels(), groups = options.groups();
  TORCH_CHECK(in > 0 && groups > 0 && out > 0,
              "in_channels, groups and out_channels must be a positive integer.");
  TORCH_CHECK(in % groups == 0, "in_channels must be divisible by groups");
  TORCH_CHECK(out % groups == 0, "out_channels must be divisible by groups");
  check_padding_name(options);
  _reversed_padding_repeated_twice = padding_amounts(options);
  std::vector<int64_t> sizes = is_transposed<Options> ? std::vector<int64_t>{in, out / groups}
                                                      : std::vector<int64_t>{out, in / groups};
  sizes.insert(sizes.end(), options.kernel_size()->begin(), options.kernel_size()->end());
  weight = this->register_parameter("weight", torch::empty(sizes));
  bias = options.bias() ? this->register_parameter("bias", torch::empty({out}))
                        : this->register_parameter("bias", Tensor(), /*requires_grad=*/false);
  reset_parameters();
}
template <size_t D, class Derived, class Options>
void ConvNdImpl<D, Derived, Options>::reset_parameters() {
  reset_weight_and_bias(weight, bias);
}
template <size_t D, class Derived, class Options>
void ConvNdImpl<D, Derived, Options>::pretty_print(std::ostream& stream) const {
  const std::string name =
      std::string(is_transposed<Options> ? "ConvTranspose" : "Conv") + std::to_string(D) + "d";
  Describe text(stream, name.c_str());
  text.bare(options.in_channels())
      .bare(options.out_channels())
      .add("kernel_size", options.kernel_size())
      .add("stride", options.stride());
  const auto differs = [](const ExpandingArray<D>& array, int64_t usual) {
    return std::any_of(array->begin(), array->end(), [&](int64_t v) { return v != usual; });
  };
  if constexpr (is_transposed<Options>) {
    text.add_if(differs(options.padding(), 0), "padding", options.padding());
  } else if (const auto* numbers = std::get_if<ExpandingArray<D>>(&options.padding())) {
    text.add_if(differs(*numbers, 0), "padding", *numbers);
  } else {
    text.add("padding",
             std::holds_alternative<enumtype::kSame>(options.padding()) ? "'same'" : "'valid'");
  }
  text.add_if(differs(options.dilation(), 1), "dilation", options.dilation());
  if constexpr (is_transposed<Options>)
    text.add_if(differs(options.output_padding(), 0), "output_padding", options.output_padding());
  text.add_unless(1, "groups", options.groups())
      .add_unless(true, "bias", options.bias())
      .add_if(!std::holds_alternative<enumtype::kZeros>(options.padding_mode()), "padding_mode",
              options.padding_mode());
}

namespace {
// The output of a transposed convolution may have one of `stride` sizes: what has to be added to
// the smallest to give the size that is wanted.
template <size_t D>
ExpandingArray<D> output_padding_for(const Tensor& input,
                                     const std::optional<at::IntArrayRef>& output_size,
                                     const ConvTransposeOptions<D>& o) {
  if (!output_size) return o.output_padding();
  at::IntArrayRef wanted = *output_size;
  if (wanted.size() == size_t(input.dim()) && input.dim() == int64_t(D) + 2)
    wanted = wanted.slice(2);
  TORCH_CHECK(wanted.size() == D, "output_size must have ", D, " or ", D + 2, " elements (got ",
              output_size->size(), ")");
  std::vector<int64_t> out;
  for (size_t d = 0; d < D; ++d) {
    const int64_t least = (input.size(int64_t(d) - int64_t(D)) - 1) * (*o.stride())[d] -
                          2 * (*o.padding())[d] + (*o.dilation())[d] * ((*o.kernel_size())[d] - 1) +
                          1;
    const int64_t most = least + (*o.stride())[d] - 1;
    TORCH_CHECK(wanted[d] >= least && wanted[d] <= most, "requested an output size of ", wanted,
                ", but valid sizes of dimension ", d, " range from ", least, " to ", most,
                " (for an input of ", input.sizes(), ")");
    out.push_back(wanted[d] - least);
  }
  return ExpandingArray<D>(out);
}
} // namespace

#define CRESSET_CONVOLUTION(D)                                                                     \
  template class ConvNdImpl<D, Conv##D##dImpl, ConvOptions<D>>;                                    \
  template class ConvNdImpl<D, ConvTranspose##D##dImpl, ConvTransposeOptions<D>>;                  \
  Conv##D##dImpl::Conv##D##dImpl(const ConvOptions<D>& options_) : ConvNdImpl(options_) {          \
    reset();                                                                                       \
  }                                                                                                \
  Tensor Conv##D##dImpl::forward(const Tensor& input) {                                            \
    F::Conv##D##dFuncOptions o;                                                                    \
    o.bias(bias).stride(options.stride()).dilation(options.dilation()).groups(options.groups());   \
    if (std::holds_alternative<enumtype::kZeros>(options.padding_mode()))                          \
      return F::conv##D##d(input, weight, o.padding(options.padding()));                           \
    const auto mode = std::holds_alternative<enumtype::kCircular>(options.padding_mode())          \
                          ? F::PadFuncOptions::mode_t(torch::kCircular)                            \
                      : std::holds_alternative<enumtype::kReflect>(options.padding_mode())         \
                          ? F::PadFuncOptions::mode_t(torch::kReflect)                             \
                          : F::PadFuncOptions::mode_t(torch::kReplicate);                          \
    return F::conv##D##d(                                                                          \
        F::pad(input, F::PadFuncOptions(_reversed_padding_repeated_twice).mode(mode)), weight,     \
        o.padding(0));                                                                             \
  }                                                                                                \
  ConvTranspose##D##dImpl::ConvTranspose##D##dImpl(const ConvTransposeOptions<D>& options_)        \
      : ConvNdImpl(options_) {                                                                     \
    reset();                                                                                       \
  }                                                                                                \
  Tensor ConvTranspose##D##dImpl::forward(const Tensor& input,                                     \
                                          const std::optional<at::IntArrayRef>& output_size) {     \
    TORCH_CHECK(std::holds_alternative<enumtype::kZeros>(options.padding_mode()),                  \
                "Only `zeros` padding mode is supported for ConvTranspose" #D "d");                \
    return F::conv_transpose##D##d(                                                                \
        input, weight,                                                                             \
        F::ConvTranspose##D##dFuncOptions()                                                        \
            .bias(bias)                                                                            \
            .stride(options.stride())                                                              \
            .padding(options.padding())                                                            \
            .output_padding(output_padding_for<D>(input, output_size, options))                    \
            .groups(options.groups())                                                              \
            .dilation(options.dilation()));                                                        \
  }
CRESSET_CONVOLUTION(1)
CRESSET_CONVOLUTION(2)
CRESSET_CONVOLUTION(3)
#undef CRESSET_CONVOLUTION

// ---- embeddings
namespace {
// Gives a module its table of vectors: the caller's (`given` is its name in messages) or a new one.
template <class Impl> void reset_table(Impl& module, const char* given) {
  auto& options = module.options;
  const int64_t rows = options.num_embeddings(), columns = options.embedding_dim();
  if (options.padding_idx()) {
    TORCH_CHECK(*options.padding_idx() < rows && *options.padding_idx() >= -rows,
                "Padding_idx must be within num_embeddings");
    if (*options.padding_idx() < 0) options.padding_idx(rows + *options.padding_idx());
  }
  if (options._weight().defined()) {
    TORCH_CHECK(options._weight().sizes() == IntArrayRef({rows, columns}), "Shape of ", given,
                " does not match num_embeddings and embedding_dim");
    module.weight = module.register_parameter("weight", options._weight());
    return;
  }
  module.weight = module.register_parameter("weight", torch::empty({rows, columns}));
  module.reset_parameters();
}
void fill_table(Tensor& weight, const std::optional<int64_t>& padding_idx) {
  init::normal_(weight);
  if (!padding_idx) return;
  const NoGradGuard no_grad;
  weight[*padding_idx].fill_(0);
}
} // namespace

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options_) : options(std::move(options_)) { reset(); }
void EmbeddingImpl::reset() { reset_table(*this, "_weight"); }
void EmbeddingImpl::reset_parameters() { fill_table(weight, options.padding_idx()); }
Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return F::embedding(indices, weight,
                      F::EmbeddingFuncOptions()
                          .padding_idx(options.padding_idx())
                          .max_norm(options.max_norm())
                          .norm_type(options.norm_type())
                          .scale_grad_by_freq(options.scale_grad_by_freq())
                          .sparse(options.sparse()));
}
void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  Describe text(stream, "Embedding");
  text.add("num_embeddings", options.num_embeddings())
      .add("embedding_dim", options.embedding_dim());
  if (options.padding_idx()) text.add("padding_idx", *options.padding_idx());
  if (options.max_norm()) text.add("max_norm", *options.max_norm());
  text.add_unless(2, "norm_type", options.norm_type())
      .add_unless(false, "scale_grad_by_freq", options.scale_grad_by_freq())
      .add_unless(false, "sparse", options.sparse());
}
Embedding Embedding::from_pretrained(const Tensor& embeddings,
                                     const EmbeddingFromPretrainedOptions& options) {
  TORCH_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
  Embedding out(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                    ._weight(embeddings)
                    .padding_idx(options.padding_idx())
                    .max_norm(options.max_norm())
                    .norm_type(options.norm_type())
                    .scale_grad_by_freq(options.scale_grad_by_freq())
                    .sparse(options.sparse()));
  out->weight.set_requires_grad(!options.freeze());
  return out;
}

EmbeddingBagImpl::EmbeddingBagImpl(EmbeddingBagOptions options_) : options(std::move(options_)) {
  reset();
}
void EmbeddingBagImpl::reset() { reset_table(*this, "weight"); }
void EmbeddingBagImpl::reset_parameters() { fill_table(weight, options.padding_idx()); }
Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets,
                                 const Tensor& per_sample_weights) {
  return F::embedding_bag(input, weight,
                          F::EmbeddingBagFuncOptions()
                              .offsets(offsets)
                              .max_norm(options.max_norm())
                              .norm_type(options.norm_type())
                              .scale_grad_by_freq(options.scale_grad_by_freq())
                              .mode(options.mode())
                              .sparse(options.sparse())
                              .per_sample_weights(per_sample_weights)
                              .include_last_offset(options.include_last_offset())
                              .padding_idx(options.padding_idx()));
}
void EmbeddingBagImpl::pretty_print(std::ostream& stream) const {
  Describe text(stream, "EmbeddingBag");
  text.add("num_embeddings", options.num_embeddings())
      .add("embedding_dim", options.embedding_dim());
  if (options.max_norm()) text.add("max_norm", *options.max_norm());
  text.add_unless(2, "norm_type", options.norm_type())
      .add_unless(false, "scale_grad_by_freq", options.scale_grad_by_freq())
      .add_unless(false, "sparse", options.sparse())
      .add_if(!std::holds_alternative<enumtype::kMean>(options.mode()), "mode", options.mode())
      .add_unless(false, "include_last_offset", options.include_last_offset());
  if (options.padding_idx()) text.add("padding_idx", *options.padding_idx());
}
EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings,
                                           const EmbeddingBagFromPretrainedOptions& options) {
  TORCH_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
  EmbeddingBag out(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                       ._weight(embeddings)
                       .max_norm(options.max_norm())
                       .norm_type(options.norm_type())
                       .scale_grad_by_freq(options.scale_grad_by_freq())
                       .mode(options.mode())
                       .sparse(options.sparse())
                       .include_last_offset(options.include_last_offset())
                       .padding_idx(options.padding_idx()));
  out->weight.set_requires_grad(!options.freeze());
  return out;
}

// ---- normalisations
template <class Derived, class Options> void NormImplBase<Derived, Options>::reset() {
  const int64_t features = options.num_features();
  const bool affine = options.affine(), tracks = options.track_running_stats();
  const auto parameter = [&](const char* name) -> Tensor& {
    return affine ? this->register_parameter(name, torch::empty({features}))
                  : this->register_parameter(name, Tensor(), /*requires_grad=*/false);
  };
  weight = parameter("weight");
  bias = parameter("bias");
  running_mean =
      this->register_buffer("running_mean", tracks ? torch::zeros({features}) : Tensor());
  running_var = this->register_buffer("running_var", tracks ? torch::ones({features}) : Tensor());
  num_batches_tracked =
      this->register_buffer("num_batches_tracked", tracks ? torch::tensor(0, kLong) : Tensor());
  reset_parameters();
}
template <class Derived, class Options> void NormImplBase<Derived, Options>::reset_running_stats() {
  if (!options.track_running_stats()) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}
template <class Derived, class Options> void NormImplBase<Derived, Options>::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}
template <class Derived, class Options>
void NormImplBase<Derived, Options>::pretty_print(std::ostream& stream) const {
  // "torch::nn::BatchNorm2dImpl" without its last four letters.
  std::string name = c10::demangle(typeid(Derived).name());
  name = name.substr(name.rfind(':') + 1);
  name.resize(name.size() - 4);
  Describe text(stream, name.c_str());
  text.bare(options.num_features()).add("eps", options.eps());
  if constexpr (std::is_same_v<Options, BatchNormOptions>)
    text.add("momentum", options.momentum().value_or(0.0));
  else
    text.add("momentum", options.momentum());
  text.add("affine", options.affine()).add("track_running_stats", options.track_running_stats());
}

namespace {
// Running statistics take part in training and, where there are any, in evaluation.
template <class Module> Tensor batch_normalized(Module& m, const Tensor& input) {
  double factor = m.options.momentum().value_or(0.0);
  const bool updates = m.is_training() && m.options.track_running_stats();
  if (updates && m.num_batches_tracked.defined()) {
    m.num_batches_tracked += 1;
    // Without a momentum the average counts all batches alike.
    if (!m.options.momentum()) factor = 1.0 / m.num_batches_tracked.template item<double>();
  }
  return F::batch_norm(input, m.running_mean, m.running_var,
                       F::BatchNormFuncOptions()
                           .weight(m.weight)
                           .bias(m.bias)
                           .training(m.is_training() || !m.options.track_running_stats())
                           .momentum(factor)
                           .eps(m.options.eps()));
}
template <class Module> Tensor instance_normalized(Module& m, const Tensor& input) {
  return F::instance_norm(input,
                          F::InstanceNormFuncOptions()
                              .running_mean(m.running_mean)
                              .running_var(m.running_var)
                              .weight(m.weight)
                              .bias(m.bias)
                              .use_input_stats(m.is_training() || !m.options.track_running_stats())
                              .momentum(m.options.momentum())
                              .eps(m.options.eps()));
}
void check_dims(const Tensor& input, int64_t least, int64_t most) {
  if (least == most)
    TORCH_CHECK(input.dim() == least, "expected ", least, "D input (got ", input.dim(), "D input)");
  TORCH_CHECK(input.dim() == least || input.dim() == most, "expected ", least, "D or ", most,
              "D input (got ", input.dim(), "D input)");
}
} // namespace

#define CRESSET_NORM(D, least)                                                                     \
  template class NormImplBase<BatchNorm##D##dImpl, BatchNormOptions>;                              \
  template class NormImplBase<InstanceNorm##D##dImpl, InstanceNormOptions>;                        \
  void BatchNorm##D##dImpl::_check_input_dim(const Tensor& input) {                                \
    check_dims(input, least, D + 2);                                                               \
  }                                                                                                \
  Tensor BatchNorm##D##dImpl::forward(const Tensor& input) {                                       \
    _check_input_dim(input);                                                                       \
    return batch_normalized(*this, input);                                                         \
  }                                                                                                \
  void InstanceNorm##D##dImpl::_check_input_dim(const Tensor& input) {                             \
    check_dims(input, D + 1, D + 2);                                                               \
  }                                                                                                \
  Tensor InstanceNorm##D##dImpl::forward(const Tensor& input) {                                    \
    _check_input_dim(input);                                                                       \
    return instance_normalized(*this, input);                                                      \
  }
CRESSET_NORM(1, 2)
CRESSET_NORM(2, 4)
CRESSET_NORM(3, 5)
#undef CRESSET_NORM

LayerNormImpl::LayerNormImpl(LayerNormOptions options_) : options(std::move(options_)) { reset(); }
void LayerNormImpl::reset() {
  const auto parameter = [&](const char* name) -> Tensor& {
    return options.elementwise_affine()
               ? register_parameter(name, torch::empty(options.normalized_shape()))
               : register_parameter(name, Tensor(), /*requires_grad=*/false);
  };
  weight = parameter("weight");
  bias = parameter("bias");
  reset_parameters();
}
void LayerNormImpl::reset_parameters() {
  if (!options.elementwise_affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}
Tensor LayerNormImpl::forward(const Tensor& input) {
  return F::layer_norm(input, F::LayerNormFuncOptions(options.normalized_shape())
                                  .weight(weight)
                                  .bias(bias)
                                  .eps(options.eps()));
}
void LayerNormImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "LayerNorm")
      .bare(options.normalized_shape())
      .add("eps", options.eps())
      .add("elementwise_affine", options.elementwise_affine());
}

GroupNormImpl::GroupNormImpl(const GroupNormOptions& options_) : options(options_) { reset(); }
void GroupNormImpl::reset() {
  const auto parameter = [&](const char* name) -> Tensor& {
    return options.affine() ? register_parameter(name, torch::empty(options.num_channels()))
                            : register_parameter(name, Tensor(), /*requires_grad=*/false);
  };
  weight = parameter("weight");
  bias = parameter("bias");
  reset_parameters();
}
void GroupNormImpl::reset_parameters() {
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}
Tensor GroupNormImpl::forward(const Tensor& input) {
  return F::group_norm(
      input,
      F::GroupNormFuncOptions(options.num_groups()).weight(weight).bias(bias).eps(options.eps()));
}
void GroupNormImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "GroupNorm")
      .bare(options.num_groups())
      .bare(options.num_channels())
      .add("eps", options.eps())
      .add("affine", options.affine());
}

Tensor LocalResponseNormImpl::forward(const Tensor& input) {
  return F::local_response_norm(input, options);
}
void LocalResponseNormImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "LocalResponseNorm")
      .bare(options.size())
      .add("alpha", options.alpha())
      .add("beta", options.beta())
      .add("k", options.k());
}
// The older name of the same function, for images only.
Tensor CrossMapLRN2dImpl::forward(const Tensor& input) {
  TORCH_CHECK(input.dim() == 4, "CrossMapLRN2d: Expected input to be 4D, got ", input.dim(),
              "D instead");
  return F::local_response_norm(input, F::LocalResponseNormFuncOptions(options.size())
                                           .alpha(options.alpha())
                                           .beta(options.beta())
                                           .k(double(options.k())));
}
void CrossMapLRN2dImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "CrossMapLRN2d")
      .bare(options.size())
      .add("alpha", options.alpha())
      .add("beta", options.beta())
      .add("k", options.k());
}

// ---- dropout and distances
#define CRESSET_DROPOUT(Name, function, FuncOptions)                                               \
  Name##Impl::Name##Impl(const DropoutOptions& options_) : options(options_) { reset(); }          \
  void Name##Impl::reset() {                                                                       \
    TORCH_CHECK(options.p() >= 0. && options.p() <= 1.,                                            \
                "dropout probability has to be between 0 and 1, but got ", options.p());           \
  }                                                                                                \
  Tensor Name##Impl::forward(Tensor input) {                                                       \
    return F::function(                                                                            \
        std::move(input),                                                                          \
        F::FuncOptions().p(options.p()).training(is_training()).inplace(options.inplace()));       \
  }                                                                                                \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                      \
    Describe(stream, #Name).add("p", options.p()).add("inplace", options.inplace());               \
  }
CRESSET_DROPOUT(Dropout, dropout, DropoutFuncOptions)
CRESSET_DROPOUT(Dropout2d, dropout2d, DropoutFuncOptions)
CRESSET_DROPOUT(Dropout3d, dropout3d, DropoutFuncOptions)
CRESSET_DROPOUT(AlphaDropout, alpha_dropout, AlphaDropoutFuncOptions)
CRESSET_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout, AlphaDropoutFuncOptions)
#undef CRESSET_DROPOUT

Tensor CosineSimilarityImpl::forward(const Tensor& x1, const Tensor& x2) {
  return F::cosine_similarity(x1, x2, options);
}
void CosineSimilarityImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "CosineSimilarity").add("dim", options.dim()).add("eps", options.eps());
}
Tensor PairwiseDistanceImpl::forward(const Tensor& x1, const Tensor& x2) {
  return F::pairwise_distance(x1, x2, options);
}
void PairwiseDistanceImpl::pretty_print(std::ostream& stream) const {
  Describe(stream, "PairwiseDistance")
      .add("p", options.p())
      .add("eps", options.eps())
      .add("keepdim", options.keepdim());
}

} // namespace torch::nn
