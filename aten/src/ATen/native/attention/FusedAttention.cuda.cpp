// Attention for 16-bit types in fused kernels (FusedAttention.cuh, FusedAttentionBackward.cuh):
// layouts, scratch memory and launches. Results have the order of dimensions of the operand they
// belong to, so that heads that were split off a row of features join it again without a copy.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/attention/FusedAttention.h>
#include <ATen/native/attention/FusedAttentionUse.h>
#include <ATen/native/attention/Native.h>

namespace at::native {
namespace {
using namespace fused_attention;
using cuda::Kernel;

constexpr const char* kForwardProgram = "native/attention/FusedAttention.cuh";
constexpr const char* kBackwardProgram = "native/attention/FusedAttentionBackward.cuh";

// By width (64, 128) and type (f16, bf16).
const Kernel kForward[2][2] = {
    {{kForwardProgram, "fused_attention_64_f16"}, {kForwardProgram, "fused_attention_64_bf16"}},
    {{kForwardProgram, "fused_attention_128_f16"}, {kForwardProgram, "fused_attention_128_bf16"}}};
const Kernel kRows[2] = {{kBackwardProgram, "fused_attention_rows_f16"},
                         {kBackwardProgram, "fused_attention_rows_bf16"}};
const Kernel kKeys[2][2] = {{{kBackwardProgram, "fused_attention_keys_64_f16"},
                             {kBackwardProgram, "fused_attention_keys_64_bf16"}},
                            {{kBackwardProgram, "fused_attention_keys_128_f16"},
                             {kBackwardProgram, "fused_attention_keys_128_bf16"}}};
const Kernel kQueries[2][2] = {{{kBackwardProgram, "fused_attention_queries_64_f16"},
                                {kBackwardProgram, "fused_attention_queries_64_bf16"}},
                               {{kBackwardProgram, "fused_attention_queries_128_f16"},
                                {kBackwardProgram, "fused_attention_queries_128_bf16"}}};

// The tensor, or a copy where its rows cannot be read 16 bytes at a time.
Tensor readable(const Tensor& t) {
  bool good = t.stride(3) == 1 && cuda::is_aligned16(t.const_data_ptr());
  for (int64_t d = 0; d < 3; ++d) good = good && (t.size(d) == 1 || t.stride(d) % 8 == 0);
  if (good) return t;
  const Tensor copy = detail::empty(t.sizes(), t.scalar_type(), t.device());
  copy.copy_(t);
  return copy;
}
Operand operand(const Tensor& t) {
  return {const_cast<void*>(t.const_data_ptr()), t.stride(0), t.stride(1), t.stride(2)};
}

int width_slot(int64_t dim) { return dim <= 64 ? 0 : 1; }
int type_slot(ScalarType dtype) { return dtype == kBFloat16 ? 1 : 0; }

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v) {
  cuda::check_same_device({&q, &k, &v});
  TORCH_CHECK(fused_attention_fits(q, k, v),
              "_fused_attention: expected 16-bit query, key and value of batch x heads x length x "
              "dim with matching sizes and a dim of at most 128 that 8 divides, got ",
              q.sizes(), ", ", k.sizes(), " and ", v.sizes(), " of ", q.scalar_type(), ", ",
              k.scalar_type(), " and ", v.scalar_type());
}

Problem problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                const Tensor& lse, bool causal, double scale) {
  Problem p;
  p.q = operand(q);
  p.k = operand(k);
  p.v = operand(v);
  p.out = operand(out);
  p.lse = static_cast<float*>(const_cast<void*>(lse.const_data_ptr()));
  p.heads = static_cast<int>(q.size(1));
  p.group = static_cast<int>(q.size(1) / k.size(1));
  p.queries = static_cast<int>(q.size(2));
  p.keys = static_cast<int>(k.size(2));
  p.dim = static_cast<int>(q.size(3));
  p.causal = causal;
  p.scale = static_cast<float>(scale);
  return p;
}

unsigned grid(int64_t heads, int64_t rows, int own) {
  const int64_t blocks = heads * ((rows + own - 1) / own);
  TORCH_CHECK(blocks <= 2147483647, "_fused_attention: too many queries or keys for one call");
  return static_cast<unsigned>(blocks);
}

template <int kWidth> void launch_forward(const Problem& p, int64_t heads, int type) {
  using Shape = ForwardShape<kWidth>;
  cuda::launch(kForward[width_slot(kWidth)][type], grid(heads, p.queries, Shape::kOwn),
               Shape::kThreads, Shape::template kSharedBytes<kWidth>, cuda::current_stream(), p);
}
template <int kWidth> void launch_backward(const Gradients& g, int64_t heads, int type) {
  using Keys = KeyShape<kWidth>;
  using Queries = QueryShape<kWidth>;
  const Problem& p = g.forward;
  const long rows = heads * g.padded;
  cuda::launch(kRows[type], cuda::blocks_for(rows, 16), 256, 0, cuda::current_stream(), g, rows);
  cuda::launch(kKeys[width_slot(kWidth)][type], grid(heads / p.group, p.keys, Keys::kOwn),
               Keys::kThreads, Keys::template kSharedBytes<kWidth>, cuda::current_stream(), g);
  cuda::launch(kQueries[width_slot(kWidth)][type], grid(heads, p.queries, Queries::kOwn),
               Queries::kThreads, Queries::template kSharedBytes<kWidth>, cuda::current_stream(),
               g);
}
} // namespace

std::tuple<Tensor, Tensor> fused_attention_cuda(const Tensor& query, const Tensor& key,
                                                const Tensor& value, bool is_causal, double scale) {
  check_operands(query, key, value);
  const auto [out, lse] = fused_attention_results(query);
  if (out.numel() == 0) return {out, lse};
  if (key.size(2) == 0) {
    out.zero_();
    lse.fill_(std::numeric_limits<double>::infinity());
    return {out, lse};
  }
  const Tensor q = readable(query), k = readable(key), v = readable(value);
  const Problem p = problem(q, k, v, out, lse, is_causal, scale);
  const auto launch = p.dim <= 64 ? launch_forward<64> : launch_forward<128>;
  launch(p, q.size(0) * q.size(1), type_slot(q.scalar_type()));
  return {out, lse};
}

std::tuple<Tensor, Tensor, Tensor>
fused_attention_backward_cuda(const Tensor& grad, const Tensor& query, const Tensor& key,
                              const Tensor& value, const Tensor& output, const Tensor& logsumexp,
                              bool is_causal, double scale) {
  check_operands(query, key, value);
  cuda::check_same_device({&query, &grad, &output, &logsumexp});
  TORCH_CHECK(grad.sizes() == query.sizes() && output.sizes() == query.sizes() &&
                  grad.scalar_type() == query.scalar_type() &&
                  output.scalar_type() == query.scalar_type() &&
                  logsumexp.scalar_type() == kFloat && logsumexp.is_contiguous() &&
                  logsumexp.sizes() == query.sizes().slice(0, 3),
              "_fused_attention_backward: the gradient, the output and the logarithms are not "
              "those of this query");
  const Tensor dq = empty_as(query), dk = empty_as(key), dv = empty_as(value);
  if (query.numel() == 0 || key.numel() == 0) {
    for (const Tensor* t : {&dq, &dk, &dv}) t->zero_();
    return {dq, dk, dv};
  }
  const Tensor q = readable(query), k = readable(key), v = readable(value), g = readable(grad),
               o = readable(output);
  const int64_t heads = q.size(0) * q.size(1);
  Gradients gradients;
  gradients.forward = problem(q, k, v, o, logsumexp, is_causal, scale);
  gradients.grad = operand(g);
  gradients.dq = operand(dq);
  gradients.dk = operand(dk);
  gradients.dv = operand(dv);
  gradients.padded = (gradients.forward.queries + kPadding - 1) / kPadding * kPadding;
  const Tensor rows = detail::empty({heads, 2, gradients.padded}, kFloat, q.device());
  gradients.rows = static_cast<float*>(rows.mutable_data_ptr());
  const auto launch = q.size(3) <= 64 ? launch_backward<64> : launch_backward<128>;
  launch(gradients, heads, type_slot(q.scalar_type()));
  return {dq, dk, dv};
}

} // namespace at::native
