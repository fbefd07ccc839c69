// scaled_dot_product_attention: the blocked kernel where it applies, else the formula made of other
// operators, which also serves dropout, broadcasting and gradients of the mask.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/TransformQueries.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/attention/AttentionBlocks.h>
#include <ATen/native/attention/CudnnAttentionUse.h>
#include <ATen/native/attention/FusedAttentionUse.h>
#include <ATen/native/attention/Native.h>
#include <ATen/native/attention/SdpChoice.h>
#include <ATen/ops/_attention_by_products.h>
#include <ATen/ops/_cudnn_attention.h>
#include <ATen/ops/_fused_attention.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/where.h>
#ifndef CRESSET_NO_CUDA
#include <c10/cuda/CUDADevice.h>
#endif

namespace at {
namespace {
std::atomic<uint32_t> g_allowed_sdp{kAllSdpBackends};
}
uint32_t allowed_sdp_backends() { return g_allowed_sdp.load(std::memory_order_relaxed); }
void allow_sdp_backends(uint32_t bits) { g_allowed_sdp.store(bits & kAllSdpBackends); }
} // namespace at

namespace at::native {
namespace {
bool has(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                     const std::optional<Tensor>& mask) {
  const ScalarType dtype = q.scalar_type();
  const auto got = [&](const char* what, auto value) {
    return c10::str(", but got query.", what, ": ", value(q), " key.", what, ": ", value(k),
                    " and value.", what, ": ", value(v), " instead.");
  };
  const auto type_name = [](const Tensor& t) { return c_type_name(t.scalar_type()); };
  TORCH_CHECK(k.scalar_type() == dtype && v.scalar_type() == dtype,
              "Expected query, key, and value to have the same dtype", got("dtype", type_name));
  TORCH_CHECK(k.device() == q.device() && v.device() == q.device(),
              "Expected query, key, and value to have the same device type",
              got("device", [](const Tensor& t) { return t.device(); }));
  TORCH_CHECK(std::min({q.dim(), k.dim(), v.dim()}) >= 2,
              "Expected query, key, and value to all be  at least 2 dimensional",
              got("dim", [](const Tensor& t) { return t.dim(); }));
  if (!has(mask)) return;
  const ScalarType of_mask = mask->scalar_type();
  TORCH_CHECK(of_mask == kBool || of_mask == kFloat || of_mask == dtype,
              "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
              "attn_mask.dtype: ",
              type_name(*mask), " and  query.dtype: ", type_name(q), " instead.");
}

// True when the blocked kernel computes exactly this call.
bool use_blocks(const Tensor& q, const Tensor& k, const Tensor& v,
                const std::optional<Tensor>& mask, double dropout_p, bool gqa) {
  if (!q.is_cpu() || !q.is_floating_point() || dropout_p != 0) return false;
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return false;
  if (functorch::is_differentiated_twice(q) || functorch::is_differentiated_twice(k) ||
      functorch::is_differentiated_twice(v))
    return false;
  if (has(mask) && (mask->dim() > 4 || mask->requires_grad())) return false;
  const SymInt of_query = q.sym_size(1), of_key = k.sym_size(1);
  const bool heads = gqa ? of_key > 0 && of_query % of_key == 0 : of_query == of_key;
  const auto same = [](const Tensor& a, const Tensor& b, int64_t d) {
    return a.sym_size(d) == b.sym_size(d);
  };
  return heads && of_query > 0 && same(k, v, 1) && same(q, k, 0) && same(q, v, 0) &&
         same(k, v, 2) && same(q, k, 3);
}

// True when the products of CUDA's own form compute exactly this call.
bool use_products(const Tensor& q, const Tensor& k, const Tensor& v,
                  const std::optional<Tensor>& mask, double dropout_p) {
  if (!q.is_cuda() || !q.has_storage() || !q.is_floating_point()) return false;
  if (dropout_p != 0 || has(mask) || !k.has_storage() || !v.has_storage()) return false;
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return false;
  if (functorch::is_differentiated_twice(q) || functorch::is_differentiated_twice(k) ||
      functorch::is_differentiated_twice(v))
    return false;
  return q.size(0) == k.size(0) && q.size(0) == v.size(0) && q.size(1) == k.size(1) &&
         q.size(1) == v.size(1) && k.size(2) == v.size(2) && q.size(3) == k.size(3);
}

// True when CUDA's fused kernels compute exactly this call.
bool use_fused(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
               double dropout_p, double scale, bool gqa) {
#ifndef CRESSET_NO_CUDA
  if (!q.is_cuda() || dropout_p != 0 || has(mask)) return false;
  if (!q.has_storage() || !k.has_storage() || !v.has_storage()) return false;
  if (!(scale > 0) || std::isinf(scale) || !fused_attention_fits(q, k, v)) return false;
  if (functorch::is_differentiated_twice(q) || functorch::is_differentiated_twice(k) ||
      functorch::is_differentiated_twice(v))
    return false;
  // Their instructions exist from compute capability 8.0 on.
  return (gqa || q.size(1) == k.size(1)) &&
         c10::cuda::device_properties(q.device().index()).major >= 8;
#else
  return false;
#endif
}

// Keys and values repeated so that every query head has its own.
Tensor for_each_query_head(const Tensor& t, const Tensor& q) {
  const int64_t wanted = q.size(-3), present = t.size(-3);
  TORCH_CHECK(present > 0 && wanted % present == 0,
              "Number of heads in key and value must divide the number of heads in query, got ",
              present, " and ", wanted);
  return wanted == present ? t : at::repeat_interleave(t, wanted / present, -3);
}
// Whether a fused form may be tried; errors when the call would be left without any form. On CUDA
// one fused form stands for all of PyTorch's, and what it does not cover goes to the formula even
// where only fused ones are allowed: the caller's choice is about speed there.
bool fused_allowed(const Tensor& q, bool fits) {
  const uint32_t allowed = allowed_sdp_backends();
  if (C10_LIKELY(allowed == kAllSdpBackends)) return fits;
  constexpr uint32_t math = 1u << kSdpMath, flash = 1u << kSdpFlash;
  const uint32_t fused =
      q.is_cuda() ? allowed & ~math & ~(1u << kSdpOverrideable) : allowed & flash;
  TORCH_CHECK(fused != 0 || (allowed & math) != 0,
              "No viable backend for scaled_dot_product_attention was found. This is likely due to "
              "turning off both the math kernel and the fused kernels.");
  TORCH_CHECK((fused != 0 && fits) || (allowed & math) != 0 || q.is_cuda(),
              "No available kernel.  Aborting execution.");
  return fused != 0 && fits;
}

} // namespace

namespace {
// What scaled_dot_product_attention does with its arguments.
struct Choice {
  bool blocks = false, cudnn = false, kernels = false, products = false; // which fused way applies
  bool fused = false;                                                    // and whether it is taken
};
#ifndef CRESSET_NO_CUDA
bool use_cudnn(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
               double dropout_p, bool causal, double scale, bool gqa, bool save, bool others) {
  const uint32_t allowed = allowed_sdp_backends();
  if (!q.is_cuda() || (allowed & (1u << kSdpCudnn)) == 0) return false;
  if (functorch::is_differentiated_twice(q) || functorch::is_differentiated_twice(k) ||
      functorch::is_differentiated_twice(v))
    return false;
  if (!gqa && q.dim() == 4 && k.dim() == 4 && q.size(1) != k.size(1)) return false;
  const bool only = (allowed & ((1u << kSdpFlash) | (1u << kSdpEfficient))) == 0;
  return cudnn_attention_applies(q, k, v, mask, dropout_p, causal, scale, save, others && !only);
}
#endif
Choice choose(const Tensor& query, const Tensor& key, const Tensor& value,
              const std::optional<Tensor>& mask, double dropout_p, bool causal, double factor,
              bool enable_gqa) {
  Choice c;
  c.blocks = use_blocks(query, key, value, mask, dropout_p, enable_gqa);
  if (!c.blocks) {
    c.kernels = use_fused(query, key, value, mask, dropout_p, factor, enable_gqa);
#ifndef CRESSET_NO_CUDA
    const bool save = c10::tls_autograd_state.grad_mode &&
                      (query.requires_grad() || key.requires_grad() || value.requires_grad());
    c.cudnn =
        use_cudnn(query, key, value, mask, dropout_p, causal, factor, enable_gqa, save, c.kernels);
#endif
    c.products = !c.kernels && !c.cudnn && use_products(query, key, value, mask, dropout_p);
  }
  c.fused = fused_allowed(query, c.blocks || c.cudnn || c.kernels || c.products);
  return c;
}
double scale_of(std::optional<double> scale, const Tensor& query) {
  return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
}
} // namespace

int64_t _fused_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value,
                          const std::optional<Tensor>& attn_mask, double dropout_p, bool is_causal,
                          std::optional<double> scale, bool enable_gqa) {
  if (query.is_nested()) return kSdpMath;
  check_attention(query, key, value, attn_mask);
  const double factor = scale_of(scale, query);
  const Choice c = choose(query, key, value, attn_mask, dropout_p, is_causal, factor, enable_gqa);
  if (!c.fused) return kSdpMath;
  if (c.cudnn) return kSdpCudnn;
  return c.products ? kSdpEfficient : kSdpFlash;
}

namespace {
// Handlers see a mask of truth values as the numbers that are added to the scores.
std::optional<Tensor> shown_mask(const std::optional<Tensor>& mask, const Tensor& query) {
  if (C10_LIKELY(!handlers_active()) || !has(mask) || mask->scalar_type() != kBool) return mask;
  const auto number = [&](double value) {
    return at::scalar_tensor(value, query.scalar_type(), kStrided, query.device(), std::nullopt);
  };
  const Tensor lowest = number(-std::numeric_limits<double>::infinity());
  return at::where(*mask, number(0.0), lowest);
}
} // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const std::optional<Tensor>& attn_mask, double dropout_p,
                                    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  check_attention(query, key, value, attn_mask);
  const double factor = scale_of(scale, query);
  const Choice c = choose(query, key, value, attn_mask, dropout_p, is_causal, factor, enable_gqa);
  if (c.fused && c.blocks)
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, is_causal, shown_mask(attn_mask, query), scale));
  if (c.fused && c.cudnn)
    return std::get<0>(
        at::_cudnn_attention(query, key, value, attn_mask, dropout_p, is_causal, factor));
  if (c.fused && c.kernels)
    return std::get<0>(at::_fused_attention(query, key, value, is_causal, factor));
  if (c.fused) return std::get<0>(at::_attention_by_products(query, key, value, is_causal, factor));
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, attn_mask, dropout_p, is_causal, std::nullopt, scale, enable_gqa));
}

std::tuple<Tensor, Tensor> attention_by_products_meta(const Tensor& query, const Tensor& key,
                                                      const Tensor& value, bool is_causal,
                                                      double /*scale*/) {
  const Device meta(kMeta);
  const ScalarType dtype = query.scalar_type();
  const AttentionBlocks blocks{query.size(0) * query.size(1), query.size(2), key.size(2),
                               is_causal};
  return {detail::empty({query.size(0), query.size(1), query.size(2), value.size(3)}, dtype, meta),
          detail::empty({blocks.total()}, dtype, meta)};
}
std::tuple<Tensor, Tensor, Tensor>
attention_by_products_backward_meta(const Tensor& /*grad*/, const Tensor& query, const Tensor& key,
                                    const Tensor& value, const Tensor& /*weights*/,
                                    bool /*is_causal*/, double /*scale*/) {
  const Device meta(kMeta);
  const ScalarType dtype = query.scalar_type();
  return {detail::empty(query.sizes(), dtype, meta), detail::empty(key.sizes(), dtype, meta),
          detail::empty(value.sizes(), dtype, meta)};
}

std::tuple<Tensor, Tensor> fused_attention_meta(const Tensor& query, const Tensor& /*key*/,
                                                const Tensor& /*value*/, bool /*is_causal*/,
                                                double /*scale*/) {
  return fused_attention_results(query);
}
std::tuple<Tensor, Tensor, Tensor>
fused_attention_backward_meta(const Tensor& /*grad*/, const Tensor& query, const Tensor& key,
                              const Tensor& value, const Tensor& /*output*/,
                              const Tensor& /*logsumexp*/, bool /*is_causal*/, double /*scale*/) {
  return {empty_as(query), empty_as(key), empty_as(value)};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_attention_meta(const Tensor& query, const Tensor& /*key*/,
                                                        const Tensor& value,
                                                        const std::optional<Tensor>& /*attn_mask*/,
                                                        double dropout_p, bool /*is_causal*/,
                                                        double /*scale*/) {
  const Device device = query.device();
  const int64_t sizes[4] = {query.size(0), query.size(1), query.size(2), value.size(3)};
  Tensor out = detail::empty(sizes, query.scalar_type(), device);
  if (query.size(3) == value.size(3)) out = empty_as(query);
  return {out, detail::empty(query.sizes().slice(0, 3), kFloat, device),
          detail::empty({dropout_p > 0 ? 4 : 0}, kLong, device)};
}
std::tuple<Tensor, Tensor, Tensor>
cudnn_attention_backward_meta(const Tensor& /*grad*/, const Tensor& query, const Tensor& key,
                              const Tensor& value, const std::optional<Tensor>& /*attn_mask*/,
                              const Tensor& /*output*/, const Tensor& /*logsumexp*/,
                              const Tensor& /*seed*/, double /*dropout_p*/, bool /*is_causal*/,
                              double /*scale*/) {
  return {empty_as(query), empty_as(key), empty_as(value)};
}

std::tuple<Tensor, Tensor>
_scaled_dot_product_attention_math(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const std::optional<Tensor>& attn_mask, double dropout_p,
                                   bool is_causal, const std::optional<Tensor>& dropout_mask,
                                   std::optional<double> scale, bool enable_gqa) {
  check_attention(query, key, value, attn_mask);
  // Only the blocked kernel takes both.
  TORCH_CHECK(
      !is_causal || !has(attn_mask),
      "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  const ScalarType dtype = query.scalar_type();
  // Half types would round the scores; they are computed in float.
  const bool reduced = dtype == kHalf || dtype == kBFloat16;
  const auto widened = [&](const Tensor& t) { return reduced ? t.to(kFloat) : t; };
  const Tensor q = widened(query);
  const Tensor k = widened(enable_gqa ? for_each_query_head(key, query) : key);
  const Tensor v = widened(enable_gqa ? for_each_query_head(value, query) : value);
  const double factor = scale ? *scale : 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  Tensor scores = at::matmul(at::mul(q, factor), k.transpose(-2, -1));
  const Scalar lowest = -std::numeric_limits<double>::infinity();
  if (is_causal) {
    const Tensor visible = at::tril(
        at::ones({query.size(-2), key.size(-2)}, TensorOptions(kBool).device(query.device())));
    scores = at::masked_fill(scores, at::logical_not(visible), lowest);
  } else if (has(attn_mask)) {
    scores = attn_mask->scalar_type() == kBool
                 ? at::masked_fill(scores, at::logical_not(*attn_mask), lowest)
                 : at::add(scores, *attn_mask);
  }
  Tensor weights = at::_safe_softmax(scores, -1);
  if (dropout_p > 0) {
    TORCH_CHECK(!has(dropout_mask) || dropout_p < 1,
                "dropout_mask needs a dropout probability below 1, got ", dropout_p);
    weights = has(dropout_mask)
                  ? at::mul(at::masked_fill(weights, at::logical_not(*dropout_mask), 0.0),
                            1.0 / (1.0 - dropout_p))
                  : at::dropout(weights, dropout_p, true);
  }
  TORCH_CHECK(dropout_p >= 0, "dropout probability has to be between 0 and 1, but got ", dropout_p);
  return {at::matmul(weights, v).to(dtype), weights.to(dtype)};
}
} // namespace at::native
