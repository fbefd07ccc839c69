// The gradients of FusedAttention.cuh. Scores are computed again from the saved logarithms, once by
// blocks that own keys (for the gradients of keys and values) and once by blocks that own queries
// (for theirs): two more products than a single pass would need, but every sum has one owner, so
// results repeat to the last bit. The first kernel works on transposed scores, whose registers are
// already the left operand of the products that follow; no probability goes through memory.
#include <ATen/cuda/device/Mma.cuh>
#include <ATen/native/attention/FusedAttention.h>

namespace at::device {
using namespace at::native::fused_attention;

// ---- what both need of each query ---------------------------------------------------------------
// Sixteen lanes for a row.
template <class T> CRESSET_DEVICE_FN void attention_rows(const Gradients& g, long total) {
  const Problem& p = g.forward;
  const long place = static_cast<long>(blockIdx.x) * (blockDim.x / 16) + threadIdx.x / 16;
  const int column = threadIdx.x % 16 * 8;
  const long index = place / g.padded;
  const int query = static_cast<int>(place % g.padded);
  const bool valid = place < total && query < p.queries;
  float sum = 0;
  if (valid && column < p.dim) {
    const int batch = static_cast<int>(index / p.heads), head = static_cast<int>(index % p.heads);
    const auto a =
        load_pack<8>(g.grad.template of_head<T>(batch, head) + query * g.grad.row + column);
    const auto b =
        load_pack<8>(p.out.template of_head<T>(batch, head) + query * p.out.row + column);
    CRESSET_UNROLL
    for (int i = 0; i < 8; ++i) sum += static_cast<float>(a.v[i]) * static_cast<float>(b.v[i]);
  }
  CRESSET_UNROLL
  for (int step = 8; step > 0; step >>= 1) sum += __shfl_xor_sync(kAllLanes, sum, step);
  if (column != 0 || place >= total) return;
  float* const to = g.rows + index * 2 * g.padded + query;
  to[0] = valid ? p.lse[index * p.queries + query] * kLog2E : __builtin_huge_valf();
  to[g.padded] = sum;
}

// ---- gradients of keys and values ---------------------------------------------------------------
// Scores become probabilities. Rows are keys; `logs` are those of the queries in the columns.
template <int kRows, int kColumns> CRESSET_DEVICE_FN void
probabilities_of_keys(Sums<kRows, kColumns>& s, const float* logs, float unit) {
  CRESSET_UNROLL
  for (int n = 0; n < kColumns; ++n) {
    const auto log = load_pack<2>(logs + s.column(n, 0));
    CRESSET_UNROLL
    for (int i = 0; i < kRows; ++i) {
      CRESSET_UNROLL
      for (int e = 0; e < 4; ++e) s.v[i][n][e] = fast_exp2(s.v[i][n][e] * unit - log.v[e % 2]);
    }
  }
}

// `change` becomes the gradient of the scores: probabilities times its distance from the row's sum.
template <int kRows, int kColumns>
CRESSET_DEVICE_FN void scores_of_keys(Sums<kRows, kColumns>& change,
                                      const Sums<kRows, kColumns>& probability, const float* sums) {
  CRESSET_UNROLL
  for (int n = 0; n < kColumns; ++n) {
    const auto sum = load_pack<2>(sums + change.column(n, 0));
    CRESSET_UNROLL
    for (int i = 0; i < kRows; ++i) {
      CRESSET_UNROLL
      for (int e = 0; e < 4; ++e)
        change.v[i][n][e] = probability.v[i][n][e] * (change.v[i][n][e] - sum.v[e % 2]);
    }
  }
}

template <class T, int kWidth> CRESSET_DEVICE_FN void attention_of_keys(const Gradients& g) {
  using Shape = KeyShape<kWidth>;
  constexpr int kThreads = Shape::kThreads, kTiles = Shape::kTiles, kOwn = Shape::kOwn;
  constexpr int kPassing = Shape::kPassing, kPart = Shape::kPart;
  constexpr int kRow = kTileRow<kWidth>, kTile = kPassing * kRow;
  const Problem& p = g.forward;
  CRESSET_DYNAMIC_SHARED(T, keys);
  T* const values = keys + kOwn * kRow;
  T* const queries = values + kOwn * kRow;
  T* const grads = queries + 2 * kTile;
  float* const rows = reinterpret_cast<float*>(grads + 2 * kTile);

  const int blocks = (p.keys + kOwn - 1) / kOwn, index = blockIdx.x / blocks;
  const int first = static_cast<int>(blockIdx.x) % blocks * kOwn, key_heads = p.heads / p.group;
  const int batch = index / key_heads, head = index % key_heads;
  const int warp_row = warp_id() * kTiles * 16, key = first + warp_row;
  // Every head of the group passes with its tiles of queries from the first that sees these keys.
  const int start = p.causal ? first : 0, last_head = (head + 1) * p.group;
  const auto load = [&](int query_head, int query, int slot) {
    load_tile<kPassing, kWidth, kThreads>(
        queries + slot * kTile, p.q.template of_head<T>(batch, query_head) + query * p.q.row,
        p.q.row, p.queries - query, p.dim);
    load_tile<kPassing, kWidth, kThreads>(
        grads + slot * kTile, g.grad.template of_head<T>(batch, query_head) + query * g.grad.row,
        g.grad.row, p.queries - query, p.dim);
    const int piece = threadIdx.x % (kPassing / 4) * 4, which = threadIdx.x / (kPassing / 4);
    const long row = (static_cast<long>(batch) * p.heads + query_head) * 2 + which;
    if (which < 2)
      copy_async(rows + (slot * 2 + which) * kPassing + piece,
                 g.rows + row * g.padded + query + piece, true);
  };
  load_tile<kOwn, kWidth, kThreads>(keys, p.k.template of_head<T>(batch, head) + first * p.k.row,
                                    p.k.row, p.keys - first, p.dim);
  load_tile<kOwn, kWidth, kThreads>(values, p.v.template of_head<T>(batch, head) + first * p.v.row,
                                    p.v.row, p.keys - first, p.dim);
  int query_head = start < p.queries ? head * p.group : last_head, tile = start, slot = 0;
  if (query_head < last_head) load(query_head, tile, 0);

  Sums<kTiles, kWidth / 8> dk, dv;
  dk.clear();
  dv.clear();
  CRESSET_NO_UNROLL
  for (; query_head < last_head; slot ^= 1) {
    const int now = tile;
    tile += kPassing;
    if (tile >= p.queries) {
      tile = start;
      ++query_head;
    }
    copies_wait();
    __syncthreads();
    if (query_head < last_head) load(query_head, tile, slot ^ 1);
    CRESSET_NO_UNROLL
    for (int part = 0; part < kPassing; part += kPart) {
      const int query = now + part;
      if (p.causal && query + kPart <= key) continue;
      const T* const q = queries + slot * kTile + part * kRow;
      const T* const grad = grads + slot * kTile + part * kRow;
      const float* const row = rows + slot * 2 * kPassing + part;
      Sums<kTiles, kPart / 8> probability, change;
      probability.clear();
      add_product_of_rows<kWidth>(probability, keys + warp_row * kRow, q);
      if (p.causal && query < key + kTiles * 16 - 1) hide_before(probability, key - query);
      probabilities_of_keys(probability, row, p.scale * kLog2E);
      add_product(dv, rounded<T>(probability), grad);
      change.clear();
      add_product_of_rows<kWidth>(change, values + warp_row * kRow, grad);
      scores_of_keys(change, probability, row + kPassing);
      add_product(dk, rounded<T>(change), q);
    }
  }
  copies_wait();
  __syncthreads();

  float factor[kTiles][2];
  const auto store = [&](const Sums<kTiles, kWidth / 8>& s, T* tile, const Operand& to, float by) {
    for (int i = 0; i < kTiles; ++i) factor[i][0] = factor[i][1] = by;
    store_rows(s, factor, tile + warp_row * kRow,
               to.template of_head<T>(batch, head) + key * to.row, to.row, p.keys - key, p.dim);
  };
  store(dk, keys, g.dk, p.scale);
  store(dv, values, g.dv, 1.0f);
}

// ---- gradients of queries -----------------------------------------------------------------------
template <class T, int kWidth> CRESSET_DEVICE_FN void attention_of_queries(const Gradients& g) {
  using Shape = QueryShape<kWidth>;
  constexpr int kThreads = Shape::kThreads, kTiles = Shape::kTiles, kOwn = Shape::kOwn;
  constexpr int kPassing = Shape::kPassing, kPart = Shape::kPart;
  constexpr int kRow = kTileRow<kWidth>, kTile = kPassing * kRow;
  const Problem& p = g.forward;
  CRESSET_DYNAMIC_SHARED(T, queries);
  T* const grads = queries + kOwn * kRow;
  T* const keys = grads + kOwn * kRow;
  T* const values = keys + 2 * kTile;

  const int blocks = (p.queries + kOwn - 1) / kOwn, index = blockIdx.x / blocks;
  const int first = (blocks - 1 - static_cast<int>(blockIdx.x) % blocks) * kOwn;
  const int batch = index / p.heads, head = index % p.heads;
  const int warp_row = warp_id() * kTiles * 16, query = first + warp_row;
  const T* const k = p.k.template of_head<T>(batch, head / p.group);
  const T* const v = p.v.template of_head<T>(batch, head / p.group);
  const int end = p.causal ? min(p.keys, first + kOwn) : p.keys;
  const auto load = [&](int key, int slot) {
    load_tile<kPassing, kWidth, kThreads>(keys + slot * kTile, k + key * p.k.row, p.k.row,
                                          p.keys - key, p.dim);
    load_tile<kPassing, kWidth, kThreads>(values + slot * kTile, v + key * p.v.row, p.v.row,
                                          p.keys - key, p.dim);
  };
  load_tile<kOwn, kWidth, kThreads>(queries, p.q.template of_head<T>(batch, head) + first * p.q.row,
                                    p.q.row, p.queries - first, p.dim);
  load_tile<kOwn, kWidth, kThreads>(grads,
                                    g.grad.template of_head<T>(batch, head) + first * g.grad.row,
                                    g.grad.row, p.queries - first, p.dim);
  load(0, 0);

  Sums<kTiles, kWidth / 8> dq;
  dq.clear();
  float log[kTiles][2], sum[kTiles][2], factor[kTiles][2];
  CRESSET_UNROLL
  for (int i = 0; i < kTiles; ++i) {
    CRESSET_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float* pair =
          g.rows + static_cast<long>(index) * 2 * g.padded + query + dq.row(i, half * 2);
      log[i][half] = pair[0];
      sum[i][half] = pair[g.padded];
      factor[i][half] = p.scale;
    }
  }
  const float unit = p.scale * kLog2E;
  int slot = 0;
  CRESSET_NO_UNROLL
  for (int tile = 0; tile < end; tile += kPassing, slot ^= 1) {
    copies_wait();
    __syncthreads();
    if (tile + kPassing < end) load(tile + kPassing, slot ^ 1);
    CRESSET_NO_UNROLL
    for (int part = 0; part < kPassing; part += kPart) {
      const int key = tile + part;
      if (key >= end || (p.causal && key >= query + kTiles * 16)) break;
      const T* const own_keys = keys + slot * kTile + part * kRow;
      Sums<kTiles, kPart / 8> probability, change;
      probability.clear();
      change.clear();
      add_product_of_rows<kWidth>(probability, queries + warp_row * kRow, own_keys);
      add_product_of_rows<kWidth>(change, grads + warp_row * kRow,
                                  values + slot * kTile + part * kRow);
      if (key + kPart > p.keys || (p.causal && key + kPart > query + 1))
        hide_after(probability, p.causal ? query - key + 1 : kPart, p.keys - key);
      CRESSET_UNROLL
      for (int i = 0; i < kTiles; ++i) {
        CRESSET_UNROLL
        for (int n = 0; n < kPart / 8; ++n) {
          CRESSET_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float weight = fast_exp2(probability.v[i][n][e] * unit - log[i][e / 2]);
            change.v[i][n][e] = weight * (change.v[i][n][e] - sum[i][e / 2]);
          }
        }
      }
      add_product(dq, rounded<T>(change), own_keys);
    }
  }
  store_rows(dq, factor, queries + warp_row * kRow,
             g.dq.template of_head<T>(batch, head) + query * g.dq.row, g.dq.row, p.queries - query,
             p.dim);
}

} // namespace at::device

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define CRESSET_FUSED_ATTENTION_ROWS(T)                                                            \
  CRESSET_KERNEL(256)                                                                              \
  fused_attention_rows_##T(const at::native::fused_attention::Gradients g, long total) {           \
    at::device::attention_rows<cresset_##T>(g, total);                                             \
  }
#define CRESSET_FUSED_ATTENTION(W, T)                                                              \
  CRESSET_KERNEL(at::native::fused_attention::KeyShape<W>::kThreads)                               \
  fused_attention_keys_##W##_##T(const at::native::fused_attention::Gradients g) {                 \
    at::device::attention_of_keys<cresset_##T, W>(g);                                              \
  }                                                                                                \
  CRESSET_KERNEL(at::native::fused_attention::QueryShape<W>::kThreads)                             \
  fused_attention_queries_##W##_##T(const at::native::fused_attention::Gradients g) {              \
    at::device::attention_of_queries<cresset_##T, W>(g);                                           \
  }
CRESSET_FUSED_ATTENTION_ROWS(f16)
CRESSET_FUSED_ATTENTION_ROWS(bf16)
CRESSET_FUSED_ATTENTION(64, f16)
CRESSET_FUSED_ATTENTION(64, bf16)
CRESSET_FUSED_ATTENTION(128, f16)
CRESSET_FUSED_ATTENTION(128, bf16)
#endif
