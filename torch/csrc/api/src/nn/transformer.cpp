// Transformer layers, their stacks, and the two stacks together.
#include <torch/nn/functional/activation.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/transformer.h>

#include <limits>

namespace F = torch::nn::functional;

namespace torch::nn {
namespace {

Tensor activated(const TransformerActivation& activation, const Tensor& x) {
  if (const auto* function = std::get_if<std::function<Tensor(const Tensor&)>>(&activation)) {
    TORCH_CHECK(*function, "the activation of a transformer layer is an empty function");
    return (*function)(x);
  }
  return std::holds_alternative<enumtype::kGELU>(activation) ? F::gelu(x) : F::relu(x);
}

// linear1, activation, dropout, linear2: the part of a layer that sees one place at a time.
template <class Layer> Tensor feed_forward(Layer& layer, const Tensor& x) {
  const Tensor hidden = activated(layer.options.activation(), layer.linear1(x));
  return layer.linear2(layer.dropout(hidden));
}

Tensor attend(MultiheadAttention& attention, const Tensor& query, const Tensor& source,
              const Tensor& mask, const Tensor& padding) {
  const auto result = attention(query, source, source, padding, /*need_weights=*/false, mask);
  return std::get<0>(result);
}

template <class Options> MultiheadAttention attention_of(const Options& o) {
  return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead()).dropout(o.dropout()));
}
template <class Options> LayerNorm norm_of(const Options& o) {
  return LayerNorm(LayerNormOptions({o.d_model()}));
}

// A module that was given by a user: the module itself in a new parent, a copy of it in the copy of
// a parent, which is being made where the parent has children already.
AnyModule adopted(const AnyModule& given, bool copying) { return copying ? given.clone() : given; }

} // namespace

// ---- layers
TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerEncoderLayerImpl::reset() {
  const int64_t width = options.d_model(), inner = options.dim_feedforward();
  const auto drop = [&](const char* name) {
    return register_module(name, Dropout(options.dropout()));
  };
  self_attn = register_module("self_attn", attention_of(options));
  linear1 = register_module("linear1", Linear(width, inner));
  dropout = drop("dropout");
  linear2 = register_module("linear2", Linear(inner, width));
  norm1 = register_module("norm1", norm_of(options));
  norm2 = register_module("norm2", norm_of(options));
  dropout1 = drop("dropout1");
  dropout2 = drop("dropout2");
}
void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}
Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask) {
  const Tensor seen = attend(self_attn, src, src, src_mask, src_key_padding_mask);
  const Tensor x = norm1(src + dropout1(seen));
  return norm2(x + dropout2(feed_forward(*this, x)));
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerDecoderLayerImpl::reset() {
  const int64_t width = options.d_model(), inner = options.dim_feedforward();
  const auto drop = [&](const char* name) {
    return register_module(name, Dropout(options.dropout()));
  };
  const auto norm = [&](const char* name) { return register_module(name, norm_of(options)); };
  self_attn = register_module("self_attn", attention_of(options));
  multihead_attn = register_module("multihead_attn", attention_of(options));
  linear1 = register_module("linear1", Linear(width, inner));
  dropout = drop("dropout");
  linear2 = register_module("linear2", Linear(inner, width));
  norm1 = norm("norm1");
  norm2 = norm("norm2");
  norm3 = norm("norm3");
  dropout1 = drop("dropout1");
  dropout2 = drop("dropout2");
  dropout3 = drop("dropout3");
}
void TransformerDecoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  multihead_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  for (LayerNorm norm : {norm1, norm2, norm3}) norm->reset_parameters();
}
Tensor TransformerDecoderLayerImpl::forward(Tensor tgt, const Tensor& memory,
                                            const Tensor& tgt_mask, const Tensor& memory_mask,
                                            const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask) {
  const Tensor own = attend(self_attn, tgt, tgt, tgt_mask, tgt_key_padding_mask);
  const Tensor x = norm1(tgt + dropout1(own));
  const Tensor read = attend(multihead_attn, x, memory, memory_mask, memory_key_padding_mask);
  const Tensor y = norm2(x + dropout2(read));
  return norm3(y + dropout3(feed_forward(*this, y)));
}

// ---- stacks
TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerEncoderImpl::reset() {
  const bool copying = !layers.is_empty();
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i)
    layers->push_back(options.encoder_layer()->clone());
  if (options.norm().is_empty()) return;
  norm = adopted(options.norm(), copying);
  register_module("norm", norm.ptr());
}
void TransformerEncoderImpl::reset_parameters() {
  for (const auto& layer : *layers) layer->as<TransformerEncoderLayer>()->reset_parameters();
}
Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask,
                                       const Tensor& src_key_padding_mask) {
  Tensor x = src;
  for (const auto& layer : *layers)
    x = layer->as<TransformerEncoderLayer>()->forward(x, src_mask, src_key_padding_mask);
  return norm.is_empty() ? x : norm.forward<Tensor>(x);
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions options_)
    : options(std::move(options_)) {
  reset();
}
void TransformerDecoderImpl::reset() {
  const bool copying = !layers.is_empty();
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i)
    layers->push_back(options.decoder_layer()->clone());
  if (options.norm().is_empty()) return;
  norm = adopted(options.norm(), copying);
  register_module("norm", norm.ptr());
}
void TransformerDecoderImpl::reset_parameters() {
  for (const auto& layer : *layers) layer->as<TransformerDecoderLayer>()->reset_parameters();
}
Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory,
                                       const Tensor& tgt_mask, const Tensor& memory_mask,
                                       const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  Tensor x = tgt;
  for (const auto& layer : *layers)
    x = layer->as<TransformerDecoderLayer>()->forward(
        x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
  return norm.is_empty() ? x : norm.forward<Tensor>(x);
}

// ---- both
TransformerImpl::TransformerImpl(TransformerOptions options_) : options(std::move(options_)) {
  reset();
}
void TransformerImpl::reset() {
  const bool copying = !encoder.is_empty();
  const auto configured = [&](auto layer) {
    return layer.dim_feedforward(options.dim_feedforward())
        .dropout(options.dropout())
        .activation(options.activation());
  };
  const LayerNormOptions norm({options.d_model()});
  if (options.custom_encoder().is_empty()) {
    const auto layer =
        configured(TransformerEncoderLayerOptions(options.d_model(), options.nhead()));
    encoder =
        AnyModule(TransformerEncoder(TransformerEncoderOptions(layer, options.num_encoder_layers())
                                         .norm(AnyModule(LayerNorm(norm)))));
  } else {
    encoder = adopted(options.custom_encoder(), copying);
  }
  register_module("encoder", encoder.ptr());
  if (options.custom_decoder().is_empty()) {
    const auto layer =
        configured(TransformerDecoderLayerOptions(options.d_model(), options.nhead()));
    decoder =
        AnyModule(TransformerDecoder(TransformerDecoderOptions(layer, options.num_decoder_layers())
                                         .norm(AnyModule(LayerNorm(norm)))));
  } else {
    decoder = adopted(options.custom_decoder(), copying);
  }
  register_module("decoder", decoder.ptr());
  reset_parameters();
}
void TransformerImpl::reset_parameters() {
  for (const Tensor& parameter : parameters())
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
}
Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                                const Tensor& tgt_mask, const Tensor& memory_mask,
                                const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask) {
  TORCH_CHECK(src.dim() == 3 && tgt.dim() == 3, "src and tgt should have 3 dimensions, but got ",
              src.dim(), " and ", tgt.dim());
  TORCH_CHECK(src.size(1) == tgt.size(1), "src and tgt should have equal batch size, but got ",
              src.size(1), " and ", tgt.size(1));
  const int64_t width = options.d_model();
  TORCH_CHECK(src.size(2) == width && tgt.size(2) == width,
              "src and tgt should have same feature size as d_model (", width, "), but got ",
              src.size(2), " and ", tgt.size(2));
  const Tensor memory = encoder.forward<Tensor>(src, src_mask, src_key_padding_mask);
  return decoder.forward<Tensor>(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                 memory_key_padding_mask);
}
Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size) {
  TORCH_CHECK(size >= 0, "Input size must be non-negative, but got ", size);
  return at::full({size, size}, -std::numeric_limits<double>::infinity(), at::get_default_dtype())
      .triu(1);
}

} // namespace torch::nn
