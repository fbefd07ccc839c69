// Attention with several heads, and the adaptive softmax.
#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/functional/normalization.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/adaptive.h>

#include <algorithm>
#include <cmath>

#include <torch/csrc/api/src/nn/maybe.h>

namespace torch::nn {
namespace functional {
namespace {

using AttentionOptions = MultiheadAttentionForwardFuncOptions;

// Queries, keys and values after their projections, [length, batch, embedding].
std::array<Tensor, 3> projected(const Tensor& query, const Tensor& key, const Tensor& value,
                                const AttentionOptions& o) {
  const std::array<const Tensor*, 3> inputs = {&query, &key, &value};
  const int64_t width = query.size(-1);
  const std::array<Tensor, 3> own = {o.q_proj_weight(), o.k_proj_weight(), o.v_proj_weight()};
  std::array<Tensor, 3> out;
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor weight =
        o.use_separate_proj_weight() ? own[i] : o.in_proj_weight().narrow(0, i * width, width);
    const Tensor bias =
        o.in_proj_bias().defined() ? o.in_proj_bias().narrow(0, i * width, width) : Tensor();
    out[i] = functional::linear(*inputs[i], weight, bias);
  }
  return out;
}

// One more column, allowed, for each row that was added to keys and values.
Tensor widened(const Tensor& mask) {
  return mask.defined() ? at::constant_pad_nd(mask, {0, 1}) : mask;
}

Tensor split_heads(const Tensor& t, int64_t batch_heads, int64_t head_dim) {
  return t.contiguous().view({-1, batch_heads, head_dim}).transpose(0, 1);
}

void check_mask(const Tensor& mask, int64_t rows, int64_t columns, int64_t batch_heads) {
  if (!mask.defined()) return;
  TORCH_CHECK(
      mask.is_floating_point() || mask.scalar_type() == kByte || mask.scalar_type() == kBool,
      "Only float, byte, and bool types are supported for attn_mask, not ", mask.scalar_type());
  TORCH_CHECK(mask.dim() == 2 || mask.dim() == 3, "attn_mask's dimension ", mask.dim(),
              " is not supported");
  const int64_t first = mask.dim() == 3 ? batch_heads : 1;
  const Tensor cube = mask.dim() == 2 ? mask.unsqueeze(0) : mask;
  TORCH_CHECK(cube.sizes() == IntArrayRef({first, rows, columns}),
              "The size of the attn_mask is not correct: ", mask.sizes());
}

// Scores with what the masks forbid set to minus infinity.
Tensor masked_scores(Tensor scores, const Tensor& attn_mask, const Tensor& padding_mask,
                     int64_t batch, int64_t heads) {
  if (attn_mask.defined()) {
    const Tensor mask = attn_mask.dim() == 2 ? attn_mask.unsqueeze(0) : attn_mask;
    scores =
        mask.is_floating_point() ? scores + mask : scores.masked_fill(mask.to(kBool), -INFINITY);
  }
  if (!padding_mask.defined()) return scores;
  const int64_t rows = scores.size(1), columns = scores.size(2);
  const Tensor forbidden = padding_mask.to(kBool).unsqueeze(1).unsqueeze(2);
  return scores.view({batch, heads, rows, columns})
      .masked_fill(forbidden, -INFINITY)
      .view({batch * heads, rows, columns});
}

} // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                        const Tensor& value,
                                                        const AttentionOptions& o) {
  const int64_t rows = query.size(0), batch = query.size(1), width = query.size(2);
  TORCH_CHECK(width == o.embed_dim_to_check(), "embed_dim ", width, " must be ",
              o.embed_dim_to_check());
  TORCH_CHECK(key.size(0) == value.size(0) && key.size(1) == value.size(1),
              "key and value must have the same length and batch");
  const int64_t heads = o.num_heads(), head_dim = width / heads;
  TORCH_CHECK(head_dim * heads == width, "embed_dim must be divisible by num_heads");
  auto [q, k, v] = projected(query, key, value, o);
  q = q * (1.0 / std::sqrt(double(head_dim)));
  Tensor attn_mask = o.attn_mask(), padding_mask = o.key_padding_mask();
  TORCH_CHECK(o.bias_k().defined() == o.bias_v().defined(), "bias_k and bias_v come together");
  if (o.bias_k().defined()) {
    TORCH_CHECK(!o.static_k().defined(), "bias cannot be added to static key.");
    TORCH_CHECK(!o.static_v().defined(), "bias cannot be added to static value.");
    k = at::cat({k, o.bias_k().repeat({1, batch, 1})});
    v = at::cat({v, o.bias_v().repeat({1, batch, 1})});
    attn_mask = widened(attn_mask);
    padding_mask = widened(padding_mask);
  }
  q = split_heads(q, batch * heads, head_dim);
  k = o.static_k().defined() ? o.static_k() : split_heads(k, batch * heads, head_dim);
  v = o.static_v().defined() ? o.static_v() : split_heads(v, batch * heads, head_dim);
  if (o.add_zero_attn()) {
    const Tensor zeros = at::zeros({k.size(0), 1, k.size(2)}, k.options());
    k = at::cat({k, zeros}, 1);
    v = at::cat({v, zeros}, 1);
    attn_mask = widened(attn_mask);
    padding_mask = widened(padding_mask);
  }
  const int64_t columns = k.size(1);
  check_mask(attn_mask, rows, columns, batch * heads);
  if (padding_mask.defined())
    TORCH_CHECK(padding_mask.size(0) == batch && padding_mask.size(1) == columns,
                "key_padding_mask has the wrong size: ", padding_mask.sizes());
  const Tensor scores =
      masked_scores(at::bmm(q, k.transpose(1, 2)), attn_mask, padding_mask, batch, heads);
  Tensor weights = at::softmax(scores, -1);
  weights =
      functional::dropout(weights, DropoutFuncOptions().p(o.dropout_p()).training(o.training()));
  const Tensor joined = at::bmm(weights, v).transpose(0, 1).contiguous().view({rows, batch, width});
  const Tensor output = functional::linear(joined, o.out_proj_weight(), o.out_proj_bias());
  if (!o.need_weights()) return {output, Tensor()};
  weights = weights.view({batch, heads, rows, columns});
  return {output, o.average_attn_weights() ? weights.sum(1) / heads : weights};
}

} // namespace functional

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& options_)
    : Cloneable("torch::nn::MultiheadAttention"), options(options_) {
  reset();
}
void MultiheadAttentionImpl::reset() {
  const int64_t width = options.embed_dim();
  _qkv_same_embed_dim = options.kdim() == width && options.vdim() == width;
  head_dim = width / options.num_heads();
  TORCH_CHECK(head_dim * options.num_heads() == width, "embed_dim must be divisible by num_heads");
  const auto none = [&](const char* name) {
    return register_parameter(name, {}, /*requires_grad=*/false);
  };
  if (_qkv_same_embed_dim) {
    in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
    q_proj_weight = none("q_proj_weight");
    k_proj_weight = none("k_proj_weight");
    v_proj_weight = none("v_proj_weight");
  } else {
    q_proj_weight = register_parameter("q_proj_weight", torch::empty({width, width}));
    k_proj_weight = register_parameter("k_proj_weight", torch::empty({width, options.kdim()}));
    v_proj_weight = register_parameter("v_proj_weight", torch::empty({width, options.vdim()}));
    in_proj_weight = none("in_proj_weight");
  }
  in_proj_bias = options.bias() ? register_parameter("in_proj_bias", torch::empty({3 * width}))
                                : none("in_proj_bias");
  out_proj = register_module("out_proj", Linear(LinearOptions(width, width).bias(options.bias())));
  if (options.add_bias_kv()) {
    bias_k = register_parameter("bias_k", torch::empty({1, 1, width}));
    bias_v = register_parameter("bias_v", torch::empty({1, 1, width}));
  } else {
    bias_k.reset();
    bias_v.reset();
  }
  _reset_parameters();
}
void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (weight.defined()) init::xavier_uniform_(weight);
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  for (const Tensor& bias : {bias_k, bias_v})
    if (bias.defined()) init::xavier_normal_(bias);
}
std::tuple<Tensor, Tensor>
MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                const Tensor& key_padding_mask, bool need_weights,
                                const Tensor& attn_mask, bool average_attn_weights) {
  functional::MultiheadAttentionForwardFuncOptions o(
      options.embed_dim(), options.num_heads(), in_proj_weight, in_proj_bias, bias_k, bias_v,
      options.add_zero_attn(), options.dropout(), out_proj->weight, out_proj->bias);
  o.training(is_training())
      .key_padding_mask(key_padding_mask)
      .need_weights(need_weights)
      .attn_mask(attn_mask)
      .average_attn_weights(average_attn_weights);
  if (!_qkv_same_embed_dim)
    o.use_separate_proj_weight(true)
        .q_proj_weight(q_proj_weight)
        .k_proj_weight(k_proj_weight)
        .v_proj_weight(v_proj_weight);
  return functional::multi_head_attention_forward(query, key, value, o);
}

// ---- adaptive softmax
AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(
    AdaptiveLogSoftmaxWithLossOptions options_)
    : options(std::move(options_)) {
  reset();
}
void AdaptiveLogSoftmaxWithLossImpl::reset() {
  const std::vector<int64_t>& given = options.cutoffs();
  TORCH_CHECK(std::is_sorted(given.begin(), given.end()) && !given.empty() && given[0] > 0 &&
                  given.back() < options.n_classes() &&
                  std::adjacent_find(given.begin(), given.end()) == given.end(),
              "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
              "order, where each value is between 1 and n_classes-1");
  TORCH_CHECK(options.div_value() != 0, "div_value should not be equal to 0");
  cutoffs = given;
  cutoffs.push_back(options.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = int64_t(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module(
      "head", Linear(LinearOptions(options.in_features(), head_size).bias(options.head_bias())));
  tail = register_module("tail", ModuleList());
  for (int64_t i = 0; i < n_clusters; ++i) {
    const int64_t hidden =
        int64_t(double(options.in_features()) / std::pow(options.div_value(), i + 1));
    tail->push_back(
        Sequential(Linear(LinearOptions(options.in_features(), hidden).bias(false)),
                   Linear(LinearOptions(hidden, cutoffs[i + 1] - cutoffs[i]).bias(false))));
  }
}
void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (int64_t i = 0; i < n_clusters; ++i) {
    auto cluster = tail->ptr<SequentialImpl>(size_t(i));
    cluster->at<LinearImpl>(0).reset_parameters();
    cluster->at<LinearImpl>(1).reset_parameters();
  }
}
ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input, const Tensor& target) {
  const bool batched = target.dim() > 0;
  const Tensor x = batched ? input : input.unsqueeze(0);
  const Tensor y = batched ? target : target.unsqueeze(0);
  TORCH_CHECK(x.size(0) == y.size(0),
              "Input and target should have the same size in the batch dimension");
  TORCH_CHECK(y.numel() == 0 ||
                  (y.min().item<int64_t>() >= 0 && y.max().item<int64_t>() < options.n_classes()),
              "Target values should be in [0, ", options.n_classes() - 1,
              "], but values in range [", y.min().item<int64_t>(), ", ", y.max().item<int64_t>(),
              "] were found. ");
  // Column of each target in the head, and what its cluster adds.
  Tensor column = y.clone();
  Tensor output = at::zeros({x.size(0)}, x.options());
  for (int64_t i = 0; i < n_clusters; ++i) {
    const Tensor rows = ((y >= cutoffs[i]) & (y < cutoffs[i + 1])).nonzero().squeeze(1);
    if (rows.numel() == 0) continue;
    const Tensor scores = tail->ptr<SequentialImpl>(size_t(i))->forward(x.index_select(0, rows));
    const Tensor within = y.index_select(0, rows) - cutoffs[i];
    const Tensor local = at::log_softmax(scores, 1).gather(1, within.unsqueeze(1)).squeeze(1);
    output = output.index_add(0, rows, local);
    column = column.index_fill(0, rows, shortlist_size + i);
  }
  const Tensor head_scores = at::log_softmax(head->forward(x), 1);
  output = output + head_scores.gather(1, column.unsqueeze(1)).squeeze(1);
  const double loss = (-output).mean().item<double>();
  return ASMoutput(batched ? output : output.squeeze(0), loss);
}
Tensor AdaptiveLogSoftmaxWithLossImpl::full_log_prob(const Tensor& input,
                                                     const Tensor& head_output) {
  const Tensor head_scores = at::log_softmax(head_output, 1);
  std::vector<Tensor> parts = {head_scores.slice(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; ++i) {
    const Tensor scores = tail->ptr<SequentialImpl>(size_t(i))->forward(input);
    parts.push_back(at::log_softmax(scores, 1) +
                    head_scores.select(1, shortlist_size + i).unsqueeze(1));
  }
  return at::cat(parts, 1);
}
Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) {
  return full_log_prob(input, head->forward(input));
}
Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) {
  return at::argmax(log_prob(input), 1);
}
void AdaptiveLogSoftmaxWithLossImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::AdaptiveLogSoftmaxWithLoss";
}

} // namespace torch::nn
