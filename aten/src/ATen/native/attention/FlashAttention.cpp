// Attention in blocks: a block of queries meets the keys a block at a time, keeping for each query
// the largest score and the sum of exponentials so far, so that the matrix of scores is never in
// memory as a whole. Tasks are blocks of queries of one head; within a task everything has a fixed
// order. Half types are computed in float.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/SymbolicShapes.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/attention/AttentionKernel.h>
#include <ATen/native/attention/Native.h>
#include <ATen/native/attention/TiledAttention.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/native/matmul/gemm/Scratch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tril.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {
using attention_loops::RowLoops;
using attention_loops::RowTable;

constexpr int64_t kQueryBlock = 128;
// Smaller where later keys are not seen: a block of queries computes the scores of all keys up to
// its last query, of which half a square of this size is for nothing.
constexpr int64_t kCausalBlock = 64;
constexpr int64_t kKeyBlock = 512;

const RowTable& row_table() { return CRESSET_BY_ISA(attention_loops::, row_table); }

bool has(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }

void check_flash(const Tensor& q, const Tensor& k, const Tensor& v, double dropout_p) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4,
              "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of "
              "{B, H, T, K}");
  TORCH_CHECK(dropout_p == 0,
              "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0");
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(),
              "scaled_dot_product_attention_flash_attention: Q/K/V should have the same data type");
  TORCH_CHECK(q.is_floating_point(),
              "scaled_dot_product_attention_flash_attention: Expected data type in FP32, FP64, "
              "BF16, FP16, but got ",
              q.scalar_type(), " instead.");
  const auto same = [](const Tensor& a, const Tensor& b, int64_t d) {
    return a.sym_size(d) == b.sym_size(d);
  };
  TORCH_CHECK(same(q, k, 3),
              "scaled_dot_product_attention_flash_attention: Q/K/V should have the same head size");
  TORCH_CHECK(same(q, k, 0) && same(q, v, 0) && same(k, v, 1) && same(k, v, 2) &&
                  k.sym_size(1) > 0 && q.sym_size(1) % k.sym_size(1) == 0,
              "scaled_dot_product_attention_flash_attention: Expected matching batches, heads and "
              "lengths, got ",
              q.sym_sizes(), ", ", k.sym_sizes(), " and ", v.sym_sizes());
}

double scale_of(const Tensor& q, std::optional<double> scale) {
  return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
}

// The mask as numbers to add, broadcast to batch x heads x queries x keys, keys flush in memory.
Tensor additive_mask(const Tensor& mask, ScalarType compute, IntArrayRef sizes) {
  Tensor bias;
  if (mask.scalar_type() == kBool) {
    bias = at::detail::empty(mask.sizes(), compute);
    bias.fill_(-std::numeric_limits<double>::infinity());
    bias = at::masked_fill(bias, mask, 0.0);
  } else {
    bias = mask.to(compute);
  }
  if (bias.dim() == 0) bias = bias.reshape({1});
  if (bias.size(-1) != sizes[3] || bias.stride(-1) != 1) {
    DimVector wide(bias.sizes().begin(), bias.sizes().end());
    wide.back() = sizes[3];
    bias = bias.expand(wide).contiguous();
  }
  return bias.expand(sizes);
}

template <class A> struct Flash {
  Flash(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias, const Tensor& out,
        const Tensor& lse, double scale, bool causal)
      : q(q), k(k), v(v), bias(bias), out(out), lse(lse), scale(scale), causal(causal),
        block(causal ? kCausalBlock : kQueryBlock),
        rows(std::is_same_v<A, float> ? row_table().f32 : row_table().f64) {}

  void run() const {
    const int64_t blocks = (q.size(2) + block - 1) / block;
    const int64_t tasks = q.size(0) * q.size(1) * blocks;
    const int64_t work = std::max<int64_t>(1, std::min(q.size(2), block) * k.size(2));
    BlockingRegion region;
    at::parallel_for(0, tasks, std::max<int64_t>(1, 8192 / work), [&](int64_t begin, int64_t end) {
      const size_t scores = static_cast<size_t>(kQueryBlock * kKeyBlock);
      gemm::Scratch memory((scores + static_cast<size_t>(kQueryBlock * v.size(3))) * sizeof(A));
      A* room = reinterpret_cast<A*>(memory.get());
      for (int64_t t = begin; t < end; ++t)
        task(t / blocks, t % blocks * block, room, room + scores);
    });
  }

  // Queries [first, first + block) of head `index`.
  void task(int64_t index, int64_t first, A* scores, A* sums) const {
    const int64_t b = index / q.size(1), h = index % q.size(1), kv = h / (q.size(1) / k.size(1));
    const int64_t m = std::min(block, q.size(2) - first), width = v.size(3);
    const A* qp = head_of(q, b, h) + first * q.stride(2);
    const A *kp = head_of(k, b, kv), *vp = head_of(v, b, kv);
    double top[kQueryBlock], total[kQueryBlock];
    std::fill(top, top + m, -std::numeric_limits<double>::infinity());
    std::fill(total, total + m, 0.0);
    std::fill(sums, sums + m * width, A(0));
    const int64_t keys = causal ? std::min(k.size(2), first + m) : k.size(2);
    for (int64_t j = 0; j < keys; j += kKeyBlock) {
      const int64_t n = std::min(kKeyBlock, keys - j);
      gemm::gemm<A>(m, n, q.size(3), static_cast<A>(scale), qp, q.stride(2), q.stride(3),
                    kp + j * k.stride(2), k.stride(3), k.stride(2), A(0), scores, n, 1);
      for (int64_t r = 0; r < m; ++r) {
        A* row = scores + r * n;
        const int64_t seen = causal ? std::clamp<int64_t>(first + r + 1 - j, 0, n) : n;
        std::fill(row + seen, row + n, A(0));
        if (seen == 0) continue;
        const A* added =
            bias.defined() ? head_of(bias, b, h) + (first + r) * bias.stride(2) + j : nullptr;
        const double factor = rows.softmax(row, seen, added, &top[r], &total[r]);
        if (factor != 1) rows.scale(sums + r * width, width, factor);
      }
      gemm::gemm<A>(m, width, n, A(1), scores, n, 1, vp + j * v.stride(2), v.stride(2), v.stride(3),
                    A(1), sums, width, 1);
    }
    A* op = const_cast<A*>(head_of(out, b, h)) + first * out.stride(2);
    A* lp = static_cast<A*>(lse.mutable_data_ptr()) + index * q.size(2) + first;
    for (int64_t r = 0; r < m; ++r) {
      const double inverse = total[r] == 0 ? 0.0 : 1.0 / total[r];
      rows.scale(sums + r * width, width, inverse);
      for (int64_t c = 0; c < width; ++c)
        op[r * out.stride(2) + c * out.stride(3)] = sums[r * width + c];
      lp[r] = static_cast<A>(top[r] + std::log(total[r]));
    }
  }

  static const A* head_of(const Tensor& t, int64_t b, int64_t h) {
    return static_cast<const A*>(t.const_data_ptr()) + b * t.stride(0) + h * t.stride(1);
  }
  const Tensor &q, &k, &v, &bias, &out, &lse;
  const double scale;
  const bool causal;
  const int64_t block;
  const RowLoops rows;
};

// Dense, with the dimensions in the order in which the query has them in memory: heads cut out of
// one projection come back side by side, so that joining them again is a view. A query whose last
// dimension is not the innermost one is read as a contiguous copy.
DimVector output_strides(const Tensor& q, IntArrayRef sizes) {
  if (q.size(3) > 1 && q.stride(3) != 1) return c10::contiguous_strides(sizes);
  return c10::infer_dense_strides(sizes, q.strides());
}
} // namespace

std::tuple<Tensor, Tensor> flash_attention_meta(const Tensor& query, const Tensor& key,
                                                const Tensor& value, double dropout_p,
                                                bool /*is_causal*/,
                                                const std::optional<Tensor>& /*attn_mask*/,
                                                std::optional<double> /*scale*/) {
  check_flash(query, key, value, dropout_p);
  const ScalarType compute = query.scalar_type() == kDouble ? kDouble : kFloat;
  if (any_symbolic(query, key, value)) {
    const SymInt shape[] = {query.sym_size(0), query.sym_size(1), query.sym_size(2),
                            value.sym_size(3)};
    const Tensor* const operand = &query;
    const bool packed = query.sym_stride(3) == 1;
    return {at::detail::empty_strided_symint(
                shape,
                packed ? symbolic_output_strides(shape, ArrayRef<const Tensor*>(&operand, 1))
                       : c10::sym_contiguous_strides(shape),
                query.scalar_type(), query.device()),
            at::detail::empty_symint(SymIntArrayRef(shape, 3), compute, query.device())};
  }
  const int64_t sizes[] = {query.size(0), query.size(1), query.size(2), value.size(3)};
  return {at::detail::empty_strided(sizes, output_strides(query, sizes), query.scalar_type(),
                                    query.device()),
          at::detail::empty(IntArrayRef(sizes, 3), compute, query.device())};
}

std::tuple<Tensor, Tensor> flash_attention_cpu(const Tensor& query, const Tensor& key,
                                               const Tensor& value, double dropout_p,
                                               bool is_causal,
                                               const std::optional<Tensor>& attn_mask,
                                               std::optional<double> scale) {
  check_flash(query, key, value, dropout_p);
  const ScalarType dtype = query.scalar_type(), compute = dtype == kDouble ? kDouble : kFloat;
  const Tensor q = query.to(compute), k = key.to(compute), v = value.to(compute);
  const int64_t sizes[] = {q.size(0), q.size(1), q.size(2), v.size(3)};
  const int64_t mask_sizes[] = {q.size(0), q.size(1), q.size(2), k.size(2)};
  const Tensor bias = has(attn_mask) ? additive_mask(*attn_mask, compute, mask_sizes) : Tensor();
  const Tensor out = at::detail::empty_strided(sizes, output_strides(query, sizes), compute);
  const Tensor lse = at::detail::empty(IntArrayRef(sizes, 3), compute);
  const double factor = scale_of(query, scale);
  if (tiled_forward_fits(q.size(2)))
    tiled_forward({q, k, v, bias, out, lse, factor, is_causal});
  else if (compute == kDouble)
    Flash<double>(q, k, v, bias, out, lse, factor, is_causal).run();
  else
    Flash<float>(q, k, v, bias, out, lse, factor, is_causal).run();
  return {out.to(dtype), lse};
}

namespace {
constexpr int64_t kScoresAtOnce = 128 * 1024;

// One tensor of every sort that a part of the backward pass reads or writes; `mask` may be
// undefined.
struct BackwardPart {
  Tensor q, k, v, g, out, logsumexp, mask, dq, dk, dv;

  // Some of the samples and heads.
  BackwardPart heads(int64_t b, int64_t samples, int64_t h, int64_t count) const {
    return each([=](const Tensor& t) { return t.narrow(0, b, samples).narrow(1, h, count); });
  }
  // Some of the queries, and the first `seen` keys.
  BackwardPart queries(int64_t first, int64_t count, int64_t seen) const {
    const auto rows = [=](const Tensor& t) { return t.narrow(2, first, count); };
    const auto keys = [=](const Tensor& t) { return t.narrow(2, 0, seen); };
    return {rows(q),
            keys(k),
            keys(v),
            rows(g),
            rows(out),
            rows(logsumexp),
            mask.defined() ? rows(mask).narrow(3, 0, seen) : mask,
            rows(dq),
            keys(dk),
            keys(dv)};
  }

 private:
  template <class F> BackwardPart each(F f) const {
    return {f(q),  f(k),  f(v), f(g), f(out), f(logsumexp), mask.defined() ? f(mask) : mask,
            f(dq), f(dk), f(dv)};
  }
};

// The probabilities are computed again from the saved logarithms of their sums. `first` is the
// number of the first query where later keys are not seen, else negative. Gradients of keys and
// values are added to what is there, or replace it.
void backward_of(const BackwardPart& part, double factor, int64_t first, bool add) {
  // The factor goes into the queries, which are fewer numbers than the scores.
  const Tensor scaled = at::mul(part.q, factor);
  Tensor p = at::matmul(scaled, part.k.transpose(-2, -1));
  if (part.mask.defined()) at::_ops::add__Tensor::call(p, part.mask, 1);
  at::_ops::sub__Tensor::call(p, part.logsumexp, 1);
  at::_ops::exp_::call(p);
  // Rows without any key, which only a mask can make, have the logarithm -inf.
  if (part.mask.defined())
    at::_ops::masked_fill__Scalar::call(
        p, at::eq(part.logsumexp, -std::numeric_limits<double>::infinity()), 0.0);
  if (first >= 0) at::_ops::tril_::call(p, first);
  const auto give = [add](Tensor to, const Tensor& value) {
    if (add)
      at::_ops::add__Tensor::call(to, value, 1);
    else
      to.copy_(value);
  };
  give(part.dv, at::matmul(p.transpose(-2, -1), part.g));
  const int64_t last = -1;
  const Tensor row = at::sum(at::mul(part.g, part.out), IntArrayRef(&last, 1), true);
  Tensor to_scores = at::matmul(part.g, part.v.transpose(-2, -1)), dq = part.dq;
  at::_ops::sub__Tensor::call(to_scores, row, 1);
  at::_ops::mul__Tensor::call(to_scores, p);
  dq.copy_(at::matmul(to_scores, part.k));
  at::_ops::mul__Scalar::call(dq, factor);
  give(part.dk, at::matmul(to_scores.transpose(-2, -1), scaled));
}

// The gradients of a few heads. Where later keys are not seen, blocks of queries meet only the keys
// up to their last query; the last block goes first, since it alone reaches all keys.
void backward_of_heads(const BackwardPart& part, bool is_causal, double factor) {
  const int64_t length = part.q.size(2), keys = part.k.size(2);
  if (!is_causal || length <= kCausalBlock) {
    backward_of(part, factor, is_causal ? 0 : -1, false);
    return;
  }
  int64_t end = length;
  for (int64_t first = (length - 1) / kCausalBlock * kCausalBlock; first >= 0;
       first -= kCausalBlock) {
    const int64_t seen = end == length ? keys : std::min(keys, end);
    backward_of(part.queries(first, end - first, seen), factor, first, end != length);
    end = first;
  }
}
} // namespace

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward_meta(
    const Tensor& /*grad_out*/, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& /*out*/, const Tensor& /*logsumexp*/, double dropout_p, bool /*is_causal*/,
    const std::optional<Tensor>& /*attn_mask*/, std::optional<double> /*scale*/) {
  check_flash(query, key, value, dropout_p);
  const auto like = [&](const Tensor& t) {
    return at::detail::empty_symint(t.sym_sizes(), query.scalar_type(), query.device());
  };
  return {like(query), like(key), like(value)};
}

std::tuple<Tensor, Tensor, Tensor>
flash_attention_backward_cpu(const Tensor& grad_out, const Tensor& query, const Tensor& key,
                             const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                             double dropout_p, bool is_causal,
                             const std::optional<Tensor>& attn_mask, std::optional<double> scale) {
  check_flash(query, key, value, dropout_p);
  const ScalarType dtype = query.scalar_type(), compute = dtype == kDouble ? kDouble : kFloat;
  const Tensor q = query.to(compute), g = grad_out.to(compute);
  const int64_t group = query.size(1) / key.size(1), keys = key.size(2);
  // Note [Shared keys]
  // Each head's gradients are computed apart and added as those of repeated keys would be, so that
  // programs that repeat keys themselves get the same bits.
  const auto gather = [&](const Tensor& t, const Tensor& like) {
    const Tensor rounded = t.to(dtype);
    if (group == 1) return rounded;
    const int64_t dim = 2;
    return at::sum(rounded.reshape({like.size(0), like.size(1), group, like.size(2), like.size(3)}),
                   IntArrayRef(&dim, 1));
  };
  if (tiled_backward_fits(query.size(2), keys)) {
    const int64_t sizes[] = {q.size(0), q.size(1), q.size(2), keys};
    const Tensor mask = has(attn_mask) ? additive_mask(*attn_mask, compute, sizes) : Tensor();
    const Tensor k = key.to(compute), v = value.to(compute), o = out.to(compute);
    const Tensor lse = logsumexp.to(compute).contiguous();
    const Tensor dq = detail::empty(q.sizes(), compute),
                 dk = detail::empty({q.size(0), q.size(1), keys, k.size(3)}, compute),
                 dv = detail::empty({q.size(0), q.size(1), keys, v.size(3)}, compute);
    tiled_backward({q, k, v, mask, o, lse, scale_of(query, scale), is_causal}, g, dq, dk, dv);
    return {dq.to(dtype), gather(dk, key), gather(dv, value)};
  }
  // Heads that share keys see copies of them.
  const auto spread = [&](const Tensor& t) {
    const Tensor c = t.to(compute);
    if (group == 1) return c;
    return c.unsqueeze(2)
        .expand({c.size(0), c.size(1), group, c.size(2), c.size(3)})
        .reshape({c.size(0), q.size(1), c.size(2), c.size(3)});
  };
  const Tensor k = spread(key), v = spread(value), o = out.to(compute);
  const Tensor lse = logsumexp.to(compute).unsqueeze(-1);
  const double factor = scale_of(query, scale);
  Tensor mask;
  if (has(attn_mask)) {
    const int64_t sizes[] = {q.size(0), q.size(1), q.size(2), keys};
    mask = additive_mask(*attn_mask, compute, sizes).expand(sizes);
  }
  Tensor dq = detail::empty(q.sizes(), compute), dk = detail::empty(k.sizes(), compute),
         dv = detail::empty(v.sizes(), compute);
  // So many heads and samples at a time that their scores stay in the second-level cache.
  const int64_t scores = std::max<int64_t>(q.size(2) * keys, 1);
  const int64_t heads =
      std::clamp<int64_t>(kScoresAtOnce / scores, 1, std::max<int64_t>(q.size(1), 1));
  const int64_t samples =
      heads < q.size(1)
          ? 1
          : std::max<int64_t>(kScoresAtOnce / (scores * std::max<int64_t>(heads, 1)), 1);
  const BackwardPart whole{q, k, v, g, o, lse, mask, dq, dk, dv};
  for (int64_t b = 0; b < q.size(0); b += samples)
    for (int64_t h = 0; h < q.size(1); h += heads)
      backward_of_heads(
          whole.heads(b, std::min(samples, q.size(0) - b), h, std::min(heads, q.size(1) - h)),
          is_causal, factor);
  return {dq.to(dtype), gather(dk, key), gather(dv, value)};
}
} // namespace at::native
