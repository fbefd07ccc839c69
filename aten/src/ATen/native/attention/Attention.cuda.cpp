// Attention on CUDA as two products with a softmax between them (AttentionSoftmax.cuh). Scores are
// kept in the accumulator's type, so that half types lose nothing before the softmax; the weights
// are saved for the gradients, which are four more products. A causal mask is taken block by block
// (AttentionBlocks.h).
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/attention/AttentionBlocks.h>
#include <ATen/native/attention/Native.h>
#include <ATen/native/matmul/Product.h>

namespace at::native {
namespace {
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/attention/AttentionSoftmax.cuh";

struct Forms {
  Kernel s4, s32, v2, v8, block;
};
#define CRESSET_FORMS(op, type)                                                                    \
  {                                                                                                \
    {kProgram, op "_s4_" type}, {kProgram, op "_s32_" type}, {kProgram, op "_v2_" type},           \
        {kProgram, op "_v8_" type}, {                                                              \
      kProgram, op "_block_" type                                                                  \
    }                                                                                              \
  }
#define CRESSET_TYPES(op)                                                                          \
  {                                                                                                \
    CRESSET_FORMS(op, "f32"), CRESSET_FORMS(op, "f64"), CRESSET_FORMS(op, "f16"),                  \
        CRESSET_FORMS(op, "bf16")                                                                  \
  }
const Forms kForward[4] = CRESSET_TYPES("attention_softmax");
const Forms kBackward[4] = CRESSET_TYPES("attention_backward");

struct Launch {
  const Kernel* kernel;
  unsigned blocks, threads;
};
// All buffers are fresh, hence aligned; packs need whole rows.
Launch launch_for(const Forms& forms, int64_t rows, int64_t keys, bool wide) {
  const int64_t pack = wide ? 2 : 4;
  const Kernel* warp = nullptr;
  if (keys % pack == 0)
    warp = keys <= 64 * pack ? &forms.v2 : keys <= 256 * pack ? &forms.v8 : nullptr;
  else
    warp = keys <= 128 ? &forms.s4 : keys <= 1024 ? &forms.s32 : nullptr;
  if (warp) return {warp, blocks_for(rows, 4), 128};
  return {&forms.block, static_cast<unsigned>(rows), keys >= 4096 ? 512u : 256u};
}

// Heads and samples as one batch.
Tensor batch_of(const Tensor& t) {
  return t.reshape({t.size(0) * t.size(1), t.size(2), t.size(3)});
}

AttentionBlocks blocks_of(const Tensor& q, const Tensor& k, bool causal) {
  return {q.size(0) * q.size(1), q.size(2), k.size(2), causal};
}

// The scores of a block, at the start of `buffer` or where its own lie.
Tensor scores_of(const Tensor& buffer, const AttentionBlocks& a, const AttentionBlocks::Block& b,
                 int64_t offset) {
  const int64_t sizes[3] = {a.batch, b.rows, b.keys}, strides[3] = {b.rows * b.keys, b.keys, 1};
  return detail::view_of(buffer, sizes, strides, offset);
}
Tensor queries_of(const Tensor& t, const AttentionBlocks::Block& b) {
  return t.narrow(1, b.start, b.rows);
}
Tensor keys_of(const Tensor& t, const AttentionBlocks::Block& b) { return t.narrow(1, 0, b.keys); }

ScalarType accumulator(ScalarType dtype) { return dtype == kDouble ? kDouble : kFloat; }

// Sums over blocks: kept in the accumulator's type while there are several. Keys that no query sees
// get zero.
struct BlockSum {
  Tensor result, sum;
  BlockSum(const Tensor& like, bool several, bool unseen) {
    const ScalarType dtype = like.scalar_type(), wide = several ? accumulator(dtype) : dtype;
    result = detail::empty(like.sizes(), dtype, like.device());
    sum = wide == dtype ? result : detail::empty(like.sizes(), wide, like.device());
    if (several || unseen) sum.zero_();
  }
  void finish() const {
    if (!sum.is_same(result)) result.copy_(sum);
  }
};

void softmax(const Launch& l, const AttentionBlocks& a, const AttentionBlocks::Block& b,
             const Tensor& scores, const Tensor& weights) {
  cuda::launch(*l.kernel, l.blocks, l.threads, 0, cuda::current_stream(), scores.const_data_ptr(),
               weights.mutable_data_ptr(), a.batch * b.rows, static_cast<int>(b.rows),
               static_cast<int>(b.keys), a.causal ? static_cast<int>(b.start) : -1);
}
void softmax_backward(const Launch& l, const AttentionBlocks& a, const AttentionBlocks::Block& b,
                      const Tensor& grad, const Tensor& weights, const Tensor& out) {
  cuda::launch(*l.kernel, l.blocks, l.threads, 0, cuda::current_stream(), grad.const_data_ptr(),
               weights.const_data_ptr(), out.mutable_data_ptr(), a.batch * b.rows,
               static_cast<int>(b.rows), static_cast<int>(b.keys),
               a.causal ? static_cast<int>(b.start) : -1);
}

} // namespace

std::tuple<Tensor, Tensor> attention_by_products_cuda(const Tensor& query, const Tensor& key,
                                                      const Tensor& value, bool is_causal,
                                                      double scale) {
  cuda::check_same_device({&query, &key, &value});
  const ScalarType dtype = query.scalar_type();
  const int slot = cuda::floating_slot(dtype, "attention_cuda");
  const AttentionBlocks a = blocks_of(query, key, is_causal);
  const Tensor q = batch_of(query), k = batch_of(key), v = batch_of(value);
  const Tensor weights = detail::empty({a.total()}, dtype, query.device());
  const int64_t sizes[4] = {query.size(0), query.size(1), a.queries, value.size(3)};
  const Tensor out = detail::empty(sizes, dtype, query.device()), flat = batch_of(out);
  if (weights.numel() == 0) {
    out.zero_(); // no keys
    return {out, weights};
  }
  const Tensor scratch = detail::empty({a.largest()}, accumulator(dtype), query.device());
  a.each([&](const AttentionBlocks::Block& b) {
    const Tensor scores = scores_of(scratch, a, b, 0), w = scores_of(weights, a, b, b.offset);
    product_cuda(queries_of(q, b), keys_of(k, b).transpose(1, 2), scores, scale);
    softmax(launch_for(kForward[slot], a.batch * b.rows, b.keys, dtype == kDouble), a, b, scores,
            w);
    product_cuda(w, keys_of(v, b), queries_of(flat, b), 1);
  });
  return {out, weights};
}

std::tuple<Tensor, Tensor, Tensor>
attention_by_products_backward_cuda(const Tensor& grad, const Tensor& query, const Tensor& key,
                                    const Tensor& value, const Tensor& weights, bool is_causal,
                                    double scale) {
  const ScalarType dtype = query.scalar_type();
  const int slot = cuda::floating_slot(dtype, "attention_cuda");
  const Device device = query.device();
  const AttentionBlocks a = blocks_of(query, key, is_causal);
  TORCH_CHECK(weights.numel() == a.total() && weights.is_contiguous(),
              "attention: the weights are not those of this query and key");
  const Tensor g = batch_of(grad), q = batch_of(query), k = batch_of(key), v = batch_of(value);
  const bool several = a.step() < a.queries;
  const Tensor to_query = detail::empty(query.sizes(), dtype, device), flat = batch_of(to_query);
  const bool unseen = a.causal && a.queries < a.keys;
  const BlockSum to_key(key, several, unseen), to_value(value, several, unseen);
  if (weights.numel() == 0) {
    for (const Tensor* t : {&to_query, &to_key.result, &to_value.result}) t->zero_();
    return {to_query, to_key.result, to_value.result};
  }
  const Tensor wide = detail::empty({a.largest()}, accumulator(dtype), device),
               narrow = detail::empty({a.largest()}, dtype, device), key_sum = batch_of(to_key.sum),
               value_sum = batch_of(to_value.sum);
  const auto add = several ? add_product_cuda : product_cuda;
  a.each([&](const AttentionBlocks::Block& b) {
    const Tensor w = scores_of(weights, a, b, b.offset), to_weights = scores_of(wide, a, b, 0),
                 to_scores = scores_of(narrow, a, b, 0), own = queries_of(g, b);
    add(w.transpose(1, 2), own, keys_of(value_sum, b), 1);
    product_cuda(own, keys_of(v, b).transpose(1, 2), to_weights, 1);
    softmax_backward(launch_for(kBackward[slot], a.batch * b.rows, b.keys, dtype == kDouble), a, b,
                     to_weights, w, to_scores);
    product_cuda(to_scores, keys_of(k, b), queries_of(flat, b), scale);
    add(to_scores.transpose(1, 2), queries_of(q, b), keys_of(key_sum, b), scale);
  });
  to_key.finish();
  to_value.finish();
  return {to_query, to_key.result, to_value.result};
}

} // namespace at::native
