// Attention by cuDNN's fused kernels (ATen/cuda/CudnnAttention.h): which calls they compute, and
// layouts, masks and seeds for those. Results have the order of dimensions of the operand they
// belong to.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/Cudnn.h>
#include <ATen/cuda/CudnnAttention.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/attention/CudnnAttentionUse.h>
#include <ATen/native/attention/FusedAttentionUse.h>
#include <ATen/native/attention/Native.h>
#include <ATen/native/attention/PackedGradients.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/random.h>
#include <c10/cuda/CUDADevice.h>
#include <c10/cuda/CUDAGuard.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace at::native {
namespace {
using cuda::CudnnAttention;
using cuda::CudnnAttentionData;

bool has(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }
int64_t rounded_up(int64_t n) { return (n + 7) / 8 * 8; }

// Whether cuDNN reads the tensor where it lies: rows of 16-byte pieces. Allocations are aligned.
bool is_readable(const Tensor& t) {
  if (t.stride(3) != 1 || t.storage_offset() % 8 != 0) return false;
  for (int64_t d = 0; d < 3; ++d)
    if (t.size(d) > 1 && (t.stride(d) <= 0 || t.stride(d) % 8 != 0)) return false;
  return true;
}
Tensor readable(const Tensor& t) {
  if (is_readable(t) && cuda::is_aligned16(t.const_data_ptr())) return t;
  const Tensor copy = detail::empty(t.sizes(), t.scalar_type(), t.device());
  copy.copy_(t);
  return copy;
}

// The strides of the tensor, or of its copy. Those of dimensions of one row are made up.
void set_strides(int64_t (&strides)[3], const Tensor& t, bool as_it_lies) {
  int64_t next = t.size(3);
  for (int d = 2; d >= 0; --d) {
    strides[d] = as_it_lies && t.size(d) > 1 ? t.stride(d) : next;
    next = strides[d] * t.size(d);
  }
}
// Of a new tensor of t's shape (empty_as).
void set_new_strides(int64_t (&strides)[3], const Tensor& t, int64_t width) {
  const int64_t h = t.size(1), n = t.size(2);
  const bool split = !(h == 1 || n <= 1 || t.stride(1) >= t.stride(2));
  strides[0] = h * n * width;
  strides[1] = split ? width : n * width;
  strides[2] = split ? h * width : width;
}

// ---- masks --------------------------------------------------------------------------------------
// As batch x heads x queries x keys; batch and heads may be 1.
Tensor in_four_dims(const Tensor& mask) {
  Tensor m = mask;
  while (m.dim() < 4) m = m.unsqueeze(0);
  return m;
}
bool is_bias(const Tensor& mask, const CudnnAttention& a) {
  return mask.scalar_type() == static_cast<ScalarType>(a.dtype) && mask.size(2) == a.queries &&
         mask.size(3) == a.keys && is_readable(mask);
}
void set_bias(CudnnAttention& a, const Tensor& mask) {
  const Tensor m = in_four_dims(mask);
  const int64_t sizes[4] = {m.size(0), m.size(1), a.queries, a.keys};
  std::memcpy(a.bias_sizes, sizes, sizeof sizes);
  if (is_bias(m, a)) {
    set_strides(a.bias, m, true);
    return;
  }
  a.bias[2] = rounded_up(a.keys);
  a.bias[1] = a.bias[2] * a.queries;
  a.bias[0] = a.bias[1] * m.size(1);
}
// The numbers to add to the scores, -inf where a mask of booleans is false.
Tensor bias_of(const Tensor& mask, const CudnnAttention& a) {
  const Tensor m = in_four_dims(mask);
  if (is_bias(m, a) && cuda::is_aligned16(m.const_data_ptr())) return m;
  const ScalarType dtype = static_cast<ScalarType>(a.dtype);
  const Tensor rows =
      detail::empty({m.size(0), m.size(1), a.queries, a.bias[2]}, dtype, m.device());
  Tensor bias = rows.narrow(3, 0, a.keys);
  const Tensor wide = m.expand(bias.sizes());
  if (m.scalar_type() != kBool) {
    bias.copy_(wide);
    return bias;
  }
  bias.zero_();
  at::_ops::masked_fill__Scalar::call(bias, at::_ops::logical_not::call(wide),
                                      -std::numeric_limits<double>::infinity());
  return bias;
}
bool mask_fits(const Tensor& mask, const CudnnAttention& a) {
  if (mask.dim() > 4 || mask.requires_grad() || !mask.has_storage() || !mask.is_cuda())
    return false;
  if (mask.scalar_type() != kBool && mask.scalar_type() != static_cast<ScalarType>(a.dtype))
    return false;
  const int64_t sizes[4] = {a.batch, a.heads, a.queries, a.keys};
  for (int64_t d = 1; d <= mask.dim(); ++d)
    if (mask.size(-d) != 1 && mask.size(-d) != sizes[4 - d]) return false;
  return true;
}

// ---- calls --------------------------------------------------------------------------------------
CudnnAttention describe(const Tensor& q, const Tensor& k, const Tensor& v,
                        const std::optional<Tensor>& mask, double dropout_p, bool causal) {
  CudnnAttention a;
  a.batch = q.size(0);
  a.heads = q.size(1);
  a.key_heads = k.size(1);
  a.queries = q.size(2);
  a.keys = k.size(2);
  a.dim = q.size(3);
  a.value_dim = v.size(3);
  set_strides(a.q, q, is_readable(q));
  set_strides(a.k, k, is_readable(k));
  set_strides(a.v, v, is_readable(v));
  set_new_strides(a.out, q, a.value_dim);
  const double keep = dropout_p > 0 ? 1 - dropout_p : 0;
  std::memcpy(&a.keep, &keep, sizeof keep);
  a.device = q.device().index();
  a.dtype = static_cast<int8_t>(q.scalar_type());
  a.causal = causal;
  if (has(mask)) set_bias(a, *mask);
  return a;
}
CudnnAttention backward_of(CudnnAttention a, const Tensor& q, const Tensor& k, const Tensor& v) {
  a.backward = true;
  if (packs_gradients(q, k, v)) {
    for (int64_t* strides : {a.dq, a.dk, a.dv}) std::copy_n(q.strides().begin(), 3, strides);
    return a;
  }
  set_new_strides(a.dq, q, a.dim);
  set_new_strides(a.dk, k, a.dim);
  set_new_strides(a.dv, v, a.value_dim);
  return a;
}

bool shapes_fit(const Tensor& q, const Tensor& k, const Tensor& v) {
  constexpr int64_t kWidest = 256;
  const ScalarType dtype = q.scalar_type();
  if (dtype != kHalf && dtype != kBFloat16) return false;
  if (k.scalar_type() != dtype || v.scalar_type() != dtype) return false;
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return false;
  for (const Tensor* t : {&q, &k, &v})
    if (t->numel() == 0 || !t->has_storage() || t->size(3) % 8 != 0 || t->size(3) > kWidest)
      return false;
  return q.size(0) == k.size(0) && q.size(0) == v.size(0) && k.size(1) == v.size(1) &&
         q.size(1) % k.size(1) == 0 && k.size(2) == v.size(2) && q.size(3) == k.size(3);
}

Tensor output_like(const Tensor& q, int64_t width) {
  const int64_t b = q.size(0), h = q.size(1), n = q.size(2);
  int64_t sizes[4] = {b, h, n, width}, strides[4] = {0, 0, 0, 1}, own[3];
  set_new_strides(own, q, width);
  std::memcpy(strides, own, sizeof own);
  return detail::empty_strided(sizes, strides, q.scalar_type(), q.device());
}

// With the strides that backward_of gives them.
std::tuple<Tensor, Tensor, Tensor> gradients_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (!packs_gradients(q, k, v))
    return {output_like(q, q.size(3)), output_like(k, k.size(3)), output_like(v, v.size(3))};
  const Tensor all =
      detail::empty({q.size(0), q.size(2), 3, q.size(1), q.size(3)}, q.scalar_type(), q.device());
  const auto part = [&](int64_t k) { return all.select(2, k).transpose(1, 2); };
  return {part(0), part(1), part(2)};
}

} // namespace

bool cudnn_attention_applies(const Tensor& q, const Tensor& k, const Tensor& v,
                             const std::optional<Tensor>& mask, double dropout_p, bool causal,
                             double scale, bool save, bool others) {
  // Below so many products a launch of our own kernels costs less than what is gained, and a kernel
  // compiled for the shape is not worth its time.
  constexpr double kWorthIt = 1 << 28, kWorthItWithoutOthers = 1 << 24;
  if (!q.is_cuda() || !shapes_fit(q, k, v) || !std::isfinite(scale)) return false;
  if (!(dropout_p >= 0 && dropout_p < 1) || (causal && has(mask))) return false;
  const double work = static_cast<double>(q.numel()) * static_cast<double>(k.size(2));
  if (work < (others ? kWorthIt : kWorthItWithoutOthers)) return false;
  // The gradients are added by whichever block comes first.
  if (save && globalContext().deterministic_algorithms) return false;
  if (!cuda::cudnn_settings().enabled || cuda::cudnn_version() == 0) return false;
  if (c10::cuda::device_properties(q.device().index()).major < 9) return false;
  CudnnAttention a = describe(q, k, v, std::nullopt, dropout_p, causal);
  if (has(mask)) {
    if (!mask_fits(*mask, a)) return false;
    set_bias(a, *mask);
  }
  const c10::cuda::CUDAGuard guard(q.device());
  return cuda::has_attention_plan(a) &&
         (!save || cuda::has_attention_plan(backward_of(a, q, k, v)));
}

std::tuple<Tensor, Tensor, Tensor> cudnn_attention_cuda(const Tensor& query, const Tensor& key,
                                                        const Tensor& value,
                                                        const std::optional<Tensor>& attn_mask,
                                                        double dropout_p, bool is_causal,
                                                        double scale) {
  cuda::check_same_device({&query, &key, &value});
  TORCH_CHECK(shapes_fit(query, key, value),
              "_cudnn_attention: expected 16-bit query, key and value of batch x heads x length x "
              "dim with matching sizes and dims of at most 256 that 8 divides, got ",
              query.sizes(), ", ", key.sizes(), " and ", value.sizes(), " of ",
              query.scalar_type());
  const Tensor q = readable(query), k = readable(key), v = readable(value);
  CudnnAttention a = describe(q, k, v, std::nullopt, dropout_p, is_causal);
  Tensor bias;
  if (has(attn_mask)) {
    TORCH_CHECK(mask_fits(*attn_mask, a),
                "_cudnn_attention: the mask does not fit: ", attn_mask->sizes(), " of ",
                attn_mask->scalar_type());
    set_bias(a, *attn_mask);
    bias = bias_of(*attn_mask, a);
  }
  set_new_strides(a.out, query, a.value_dim);
  const Tensor out = output_like(query, a.value_dim);
  const Tensor lse = detail::empty(query.sizes().slice(0, 3), kFloat, query.device());
  Tensor seed = detail::empty({dropout_p > 0 ? 4 : 0}, kLong, query.device());
  if (dropout_p > 0) at::_ops::random__from::call(seed, 0, int64_t(1) << 40, std::nullopt);
  CudnnAttentionData data{};
  data.q = q.const_data_ptr();
  data.k = k.const_data_ptr();
  data.v = v.const_data_ptr();
  data.out = out.const_data_ptr();
  data.lse = lse.const_data_ptr();
  data.bias = bias.defined() ? bias.const_data_ptr() : nullptr;
  data.seed = seed.const_data_ptr();
  data.scale = scale;
  cuda::run_attention(a, data, cuda::current_stream());
  return {out, lse, seed};
}

std::tuple<Tensor, Tensor, Tensor>
cudnn_attention_backward_cuda(const Tensor& grad, const Tensor& query, const Tensor& key,
                              const Tensor& value, const std::optional<Tensor>& attn_mask,
                              const Tensor& output, const Tensor& logsumexp, const Tensor& seed,
                              double dropout_p, bool is_causal, double scale) {
  TORCH_CHECK(grad.sizes() == output.sizes() && grad.scalar_type() == query.scalar_type() &&
                  logsumexp.sizes() == query.sizes().slice(0, 3) && logsumexp.is_contiguous(),
              "_cudnn_attention_backward: the gradient and the logarithms are not those of this "
              "query");
  const Tensor q = readable(query), k = readable(key), v = readable(value);
  CudnnAttention a = describe(q, k, v, attn_mask, dropout_p, is_causal);
  set_new_strides(a.out, query, a.value_dim);
  const PackGradients packs(packs_gradients(query, key, value) &&
                            cuda::has_attention_plan(backward_of(a, query, key, value)));
  a = backward_of(a, query, key, value);
  const Tensor bias = has(attn_mask) ? bias_of(*attn_mask, a) : Tensor();
  // The output's layout is also the gradient's.
  const auto laid_out = [&](const Tensor& t) {
    bool same = cuda::is_aligned16(t.const_data_ptr()) && t.stride(3) == 1;
    for (int d = 0; d < 3; ++d) same = same && (t.size(d) == 1 || t.stride(d) == a.out[d]);
    if (same) return t;
    const Tensor copy = output_like(query, a.value_dim);
    copy.copy_(t);
    return copy;
  };
  const Tensor o = laid_out(output), g = laid_out(grad);
  const auto [dq, dk, dv] = gradients_of(query, key, value);
  CudnnAttentionData data{};
  data.q = q.const_data_ptr();
  data.k = k.const_data_ptr();
  data.v = v.const_data_ptr();
  data.out = o.const_data_ptr();
  data.lse = logsumexp.const_data_ptr();
  data.bias = bias.defined() ? bias.const_data_ptr() : nullptr;
  data.seed = seed.const_data_ptr();
  data.scale = scale;
  data.grad = g.const_data_ptr();
  data.dq = dq.const_data_ptr();
  data.dk = dk.const_data_ptr();
  data.dv = dv.const_data_ptr();
  cuda::run_attention(a, data, cuda::current_stream());
  return {dq, dk, dv};
}

} // namespace at::native
