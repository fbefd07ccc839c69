// Attention with its projections: the operators beneath torch.nn.MultiheadAttention when it only
// predicts. They are made of others, so that every device, dtype and transform has them.
#include <cmath>
#include <limits>

#include <ATen/native/attention/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

namespace at::native {
namespace {

// What a mask is about, as the callers number it.
enum MaskType : int64_t { kSourceMask = 0, kKeyPadding = 1, kBatchAndHeads = 2 };

void check_projection(const Tensor& query, const Tensor& key, const Tensor& value,
                      int64_t embed_dim, int64_t num_head, const Tensor& weight,
                      const Tensor& bias) {
  for (const Tensor* t : {&query, &key, &value}) {
    TORCH_CHECK_NOT_IMPLEMENTED(!t->is_nested(),
                                "_native_multi_head_attention is not implemented for nested "
                                "tensors, got one of dtype ",
                                t->scalar_type(), " on ", t->device());
    TORCH_CHECK(t->dim() == 3, "expected 3-D `query`, `key` and `value`, got ", t->dim(),
                "-D tensor");
    TORCH_CHECK(t->size(2) == embed_dim, "passed-in embed_dim ", embed_dim,
                " didn't match last dim of a tensor of size ", t->sizes());
  }
  TORCH_CHECK(num_head > 0 && embed_dim % num_head == 0, "embed_dim ", embed_dim,
              " must divide evenly by num_heads ", num_head);
  TORCH_CHECK(weight.dim() == 2 && weight.size(0) == 3 * embed_dim && weight.size(1) == embed_dim,
              "expected `qkv_weight` of size [", 3 * embed_dim, ", ", embed_dim, "], got ",
              weight.sizes());
  TORCH_CHECK(bias.dim() == 1 && bias.size(0) == 3 * embed_dim, "expected 1-D `qkv_bias` of size ",
              3 * embed_dim, ", got ", bias.sizes());
}

// [batch, length, embed_dim] as [batch, heads, length, embed_dim / heads].
Tensor by_heads(const Tensor& t, int64_t heads) {
  return t.view({t.size(0), t.size(1), heads, t.size(2) / heads}).transpose(1, 2);
}

// The mask in a shape that broadcasts to [batch, heads, queries, keys].
Tensor broadcastable(const Tensor& mask, std::optional<int64_t> mask_type) {
  TORCH_CHECK(mask_type.has_value(), "Mask Type should be defined");
  if (*mask_type == kKeyPadding && mask.dim() == 2) return mask.unsqueeze(1).unsqueeze(1);
  TORCH_CHECK(*mask_type == kSourceMask || *mask_type == kBatchAndHeads ||
                  *mask_type == kKeyPadding,
              "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask), "
              "got ",
              *mask_type);
  return mask;
}

} // namespace

std::tuple<Tensor, Tensor> _native_multi_head_attention(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t embed_dim,
    int64_t num_head, const Tensor& qkv_weight, const Tensor& qkv_bias, const Tensor& proj_weight,
    const Tensor& proj_bias, const std::optional<Tensor>& mask, bool need_weights,
    bool average_attn_weights, std::optional<int64_t> mask_type) {
  check_projection(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias);
  const auto part = [&](const Tensor& t, int64_t k) {
    return by_heads(at::linear(t, qkv_weight.narrow(0, k * embed_dim, embed_dim),
                               qkv_bias.narrow(0, k * embed_dim, embed_dim)),
                    num_head);
  };
  const Tensor q = part(query, 0), k = part(key, 1), v = part(value, 2);
  std::optional<Tensor> hidden; // true where a key is not seen
  if (mask.has_value() && mask->defined()) hidden = broadcastable(*mask, mask_type);
  Tensor out, weights;
  if (!need_weights) {
    std::optional<Tensor> seen;
    if (hidden) seen = hidden->scalar_type() == kBool ? at::logical_not(*hidden) : *hidden;
    out = at::scaled_dot_product_attention(q, k, v, seen, 0.0, false, std::nullopt, false);
  } else {
    const double factor = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
    Tensor scores = at::matmul(at::mul(q, Scalar(factor)), k.transpose(-2, -1));
    if (hidden && hidden->scalar_type() == kBool) {
      scores = at::masked_fill(scores, *hidden, -std::numeric_limits<double>::infinity());
    } else if (hidden) {
      scores = at::add(scores, *hidden);
    }
    weights = at::softmax(scores, -1);
    out = at::matmul(weights, v);
    if (average_attn_weights) weights = at::mean(weights, {1});
  }
  const Tensor joined = out.transpose(1, 2).reshape({query.size(0), query.size(1), embed_dim});
  return {at::linear(joined, proj_weight, proj_bias), weights};
}

std::tuple<Tensor, Tensor, Tensor>
_transform_bias_rescale_qkv(const Tensor& qkv, const Tensor& qkv_bias, int64_t num_heads) {
  TORCH_CHECK(qkv.dim() == 3 && qkv_bias.dim() == 1 && qkv.size(2) == qkv_bias.size(0) &&
                  num_heads > 0 && qkv.size(2) % (3 * num_heads) == 0,
              "expected qkv of size [batch, length, 3 * embed_dim] and a bias of size [3 * "
              "embed_dim] for ",
              num_heads, " heads, got ", qkv.sizes(), " and ", qkv_bias.sizes());
  const int64_t embed_dim = qkv.size(2) / 3;
  const Tensor shifted = at::add(qkv, qkv_bias);
  const auto part = [&](int64_t k) {
    return by_heads(shifted.narrow(2, k * embed_dim, embed_dim).contiguous(), num_heads)
        .contiguous();
  };
  const double factor = 1.0 / std::sqrt(static_cast<double>(embed_dim / num_heads));
  return {at::mul(part(0), Scalar(factor)), part(1), part(2)};
}

} // namespace at::native
