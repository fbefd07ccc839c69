// The softmax between the two products of attention. Scores come as the accumulator's type and
// weights leave as the operands'; with a causal mask query i sees keys 0 .. i, the rest of its row
// is neither read nor computed, only set to zero. Rows of up to 1024 keys belong to a warp, which
// holds them in registers; longer ones to a block.
#include <ATen/cuda/device/Block.cuh>

namespace at::device {

// Keys that a row's query sees. The rows are `queries` queries of each head; the first of them is
// query `first`, or there is no mask where that is negative.
CRESSET_DEVICE_FN int visible_keys(long row, int queries, int keys, int first) {
  if (first < 0) return keys;
  const int q = first + static_cast<int>(row % queries);
  return q + 1 < keys ? q + 1 : keys;
}

template <class A, class T, int kPack, int kPacks> CRESSET_DEVICE_FN void
attention_softmax_warp(const A* scores, T* weights, long rows, int queries, int keys, int first) {
  const long row = static_cast<long>(blockIdx.x) * (blockDim.x >> 5) + warp_id();
  if (row >= rows) return;
  const int seen = visible_keys(row, queries, keys, first);
  const A* x = scores + row * keys;
  A v[kPacks][kPack];
  A max = -c10::numeric_limits<A>::infinity();
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    Pack<A, kPack> loaded;
    if (column < seen) loaded = load_pack<kPack>(x + column);
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      v[p][j] = column + j < seen ? loaded.v[j] : -c10::numeric_limits<A>::infinity();
      max = Larger()(max, v[p][j]);
    }
  }
  max = warp_fold(max, Larger());
  A sum = 0;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      const bool mine = (p * 32 + lane_id()) * kPack + j < seen;
      v[p][j] = mine ? fast_exp(v[p][j] - max) : A(0);
      sum += v[p][j];
    }
  }
  const A factor = A(1) / warp_sum(sum);
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    if (column >= keys) continue;
    Pack<T, kPack> result;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) result.v[j] = convert<T>(v[p][j] * factor);
    store_pack<kPack>(weights + row * keys + column, result);
  }
}

template <class A, class T> CRESSET_DEVICE_FN void
attention_softmax_block(const A* scores, T* weights, int queries, int keys, int first) {
  CRESSET_SHARED A scratch[32];
  const long row = blockIdx.x;
  const int seen = visible_keys(row, queries, keys, first);
  const A* x = scores + row * keys;
  T* y = weights + row * keys;
  A max = -c10::numeric_limits<A>::infinity();
  for (int i = threadIdx.x; i < seen; i += blockDim.x) max = Larger()(max, x[i]);
  max = block_fold(max, Larger(), -c10::numeric_limits<A>::infinity(), scratch);
  A sum = 0;
  for (int i = threadIdx.x; i < seen; i += blockDim.x) sum += fast_exp(x[i] - max);
  const A factor = A(1) / block_sum(sum, scratch);
  for (int i = threadIdx.x; i < keys; i += blockDim.x)
    y[i] = convert<T>(i < seen ? fast_exp(x[i] - max) * factor : A(0));
}

// grad_scores = weights (grad - sum(grad weights)), zero where the mask hides.
template <class A, class T, int kPack, int kPacks>
CRESSET_DEVICE_FN void attention_backward_warp(const A* grad, const T* weights, T* out, long rows,
                                               int queries, int keys, int first) {
  const long row = static_cast<long>(blockIdx.x) * (blockDim.x >> 5) + warp_id();
  if (row >= rows) return;
  const int seen = visible_keys(row, queries, keys, first);
  A g[kPacks][kPack], w[kPacks][kPack];
  A sum = 0;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    Pack<A, kPack> a;
    Pack<T, kPack> b;
    if (column < seen) {
      a = load_pack<kPack>(grad + row * keys + column);
      b = load_pack<kPack>(weights + row * keys + column);
    }
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      const bool mine = column + j < seen;
      g[p][j] = mine ? a.v[j] : A(0);
      w[p][j] = mine ? convert<A>(b.v[j]) : A(0);
      sum += g[p][j] * w[p][j];
    }
  }
  sum = warp_sum(sum);
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    if (column >= keys) continue;
    Pack<T, kPack> result;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) result.v[j] = convert<T>(w[p][j] * (g[p][j] - sum));
    store_pack<kPack>(out + row * keys + column, result);
  }
}

template <class A, class T>
CRESSET_DEVICE_FN void attention_backward_block(const A* grad, const T* weights, T* out,
                                                int queries, int keys, int first) {
  CRESSET_SHARED A scratch[32];
  const long row = blockIdx.x;
  const int seen = visible_keys(row, queries, keys, first);
  const A* g = grad + row * keys;
  const T* w = weights + row * keys;
  A sum = 0;
  for (int i = threadIdx.x; i < seen; i += blockDim.x) sum += g[i] * convert<A>(w[i]);
  sum = block_sum(sum, scratch);
  for (int i = threadIdx.x; i < keys; i += blockDim.x)
    out[row * keys + i] = convert<T>(i < seen ? convert<A>(w[i]) * (g[i] - sum) : A(0));
}

} // namespace at::device

#define CRESSET_ATTENTION_WARP(form, pack, packs, A, T)                                            \
  CRESSET_KERNEL(128)                                                                              \
  attention_softmax_##form##_##T(const cresset_##A* scores, cresset_##T* weights, long rows,       \
                                 int queries, int keys, int first) {                               \
    at::device::attention_softmax_warp<cresset_##A, cresset_##T, pack, packs>(                     \
        scores, weights, rows, queries, keys, first);                                              \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  attention_backward_##form##_##T(const cresset_##A* grad, const cresset_##T* weights,             \
                                  cresset_##T* out, long rows, int queries, int keys, int first) { \
    at::device::attention_backward_warp<cresset_##A, cresset_##T, pack, packs>(                    \
        grad, weights, out, rows, queries, keys, first);                                           \
  }
#define CRESSET_ATTENTION(V, A, T)                                                                 \
  CRESSET_ATTENTION_WARP(s4, 1, 4, A, T)                                                           \
  CRESSET_ATTENTION_WARP(s32, 1, 32, A, T)                                                         \
  CRESSET_ATTENTION_WARP(v2, V, 2, A, T)                                                           \
  CRESSET_ATTENTION_WARP(v8, V, 8, A, T)                                                           \
  CRESSET_KERNEL(512)                                                                              \
  attention_softmax_block_##T(const cresset_##A* scores, cresset_##T* weights, long, int queries,  \
                              int keys, int first) {                                               \
    at::device::attention_softmax_block(scores, weights, queries, keys, first);                    \
  }                                                                                                \
  CRESSET_KERNEL(512)                                                                              \
  attention_backward_block_##T(const cresset_##A* grad, const cresset_##T* weights,                \
                               cresset_##T* out, long, int queries, int keys, int first) {         \
    at::device::attention_backward_block(grad, weights, out, queries, keys, first);                \
  }
CRESSET_ATTENTION(4, f32, f32)
CRESSET_ATTENTION(2, f64, f64)
CRESSET_ATTENTION(4, f32, f16)
CRESSET_ATTENTION(4, f32, bf16)
