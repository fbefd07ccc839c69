// Attention in one kernel for 16-bit types: a block owns queries of one head and meets the keys a
// tile at a time, keeping for each query the largest score and the sum of exponentials so far, so
// that scores live in registers only. Two tiles of keys and values are in shared memory: one is
// computed with while the next arrives.
#include <ATen/cuda/device/Mma.cuh>
#include <ATen/native/attention/FusedAttention.h>

namespace at::device {
using namespace at::native::fused_attention;

// The softmax of a warp's queries as far as the keys have been met. `total` is the lane's own part
// of the sum.
template <int kRows> struct RunningSoftmax {
  float top[kRows][2], total[kRows][2];
  CRESSET_DEVICE_FN RunningSoftmax() {
    CRESSET_UNROLL
    for (int i = 0; i < kRows; ++i)
      for (int half = 0; half < 2; ++half) {
        top[i][half] = -__builtin_huge_valf();
        total[i][half] = 0;
      }
  }

  // Scores become exponentials relative to the new largest score; what was summed so far (`out`
  // too) is scaled to it. `unit` is the scores' factor over ln 2.
  template <int kColumns, int kWidth>
  CRESSET_DEVICE_FN void add(Sums<kRows, kColumns>& s, Sums<kRows, kWidth>& out, float unit) {
    CRESSET_UNROLL
    for (int i = 0; i < kRows; ++i) {
      CRESSET_UNROLL
      for (int half = 0; half < 2; ++half) {
        float largest = top[i][half];
        CRESSET_UNROLL
        for (int n = 0; n < kColumns; ++n)
          largest = fmaxf(largest, fmaxf(s.v[i][n][half * 2], s.v[i][n][half * 2 + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
        // A row of -inf alone has no exponentials.
        const float base = largest == -__builtin_huge_valf() ? 0.0f : largest * unit;
        const float factor = fast_exp2(top[i][half] * unit - base);
        top[i][half] = largest;
        float sum = 0;
        CRESSET_UNROLL
        for (int n = 0; n < kColumns; ++n) {
          CRESSET_UNROLL
          for (int e = half * 2; e < half * 2 + 2; ++e) {
            s.v[i][n][e] = fast_exp2(s.v[i][n][e] * unit - base);
            sum += s.v[i][n][e];
          }
        }
        total[i][half] = total[i][half] * factor + sum;
        CRESSET_UNROLL
        for (int n = 0; n < kWidth; ++n) {
          out.v[i][n][half * 2] *= factor;
          out.v[i][n][half * 2 + 1] *= factor;
        }
      }
    }
  }

  // The factor of each row of `out`, and its logarithm to lse[row] (row < rows). Without
  // exponentials the row is zero, and +inf makes its gradients zero.
  CRESSET_DEVICE_FN void finish(float (&factor)[kRows][2], float scale, float* lse, int rows) {
    CRESSET_UNROLL
    for (int i = 0; i < kRows; ++i) {
      CRESSET_UNROLL
      for (int half = 0; half < 2; ++half) {
        float sum = total[i][half];
        sum += __shfl_xor_sync(kAllLanes, sum, 1);
        sum += __shfl_xor_sync(kAllLanes, sum, 2);
        factor[i][half] = sum == 0 ? 0.0f : 1.0f / sum;
        const int row = Sums<kRows, 2>::row(i, half * 2);
        if (lane_id() % 4 == 0 && row < rows)
          lse[row] = sum == 0 ? __builtin_huge_valf() : top[i][half] * scale + logf(sum);
      }
    }
  }
};

template <class T, int kWidth> CRESSET_DEVICE_FN void fused_attention(const Problem& p) {
  using Shape = ForwardShape<kWidth>;
  constexpr int kThreads = Shape::kThreads, kTiles = Shape::kTiles, kOwn = Shape::kOwn;
  constexpr int kPassing = Shape::kPassing, kRow = kTileRow<kWidth>, kTile = kPassing * kRow;
  CRESSET_DYNAMIC_SHARED(T, queries);
  T* const keys = queries + kOwn * kRow;
  T* const values = keys + 2 * kTile;

  // The longest blocks of a head come first.
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
  load(0, 0);

  Sums<kTiles, kWidth / 8> out;
  out.clear();
  RunningSoftmax<kTiles> softmax;
  int slot = 0;
  CRESSET_NO_UNROLL
  for (int key = 0; key < end; key += kPassing, slot ^= 1) {
    copies_wait();
    __syncthreads();
    if (key + kPassing < end) load(key + kPassing, slot ^ 1);
    if (p.causal && key >= query + kTiles * 16) continue;
    Sums<kTiles, kPassing / 8> scores;
    scores.clear();
    add_product_of_rows<kWidth>(scores, queries + warp_row * kRow, keys + slot * kTile);
    if (key + kPassing > p.keys || (p.causal && key + kPassing > query + 1))
      hide_after(scores, p.causal ? query - key + 1 : kPassing, p.keys - key);
    softmax.add(scores, out, p.scale * kLog2E);
    add_product(out, rounded<T>(scores), values + slot * kTile);
  }

  float factor[kTiles][2];
  softmax.finish(factor, p.scale, p.lse + static_cast<long>(index) * p.queries + query,
                 p.queries - query);
  store_rows(out, factor, queries + warp_row * kRow,
             p.out.template of_head<T>(batch, head) + query * p.out.row, p.out.row,
             p.queries - query, p.dim);
}

} // namespace at::device

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define CRESSET_FUSED_ATTENTION(W, T)                                                              \
  CRESSET_KERNEL(at::native::fused_attention::ForwardShape<W>::kThreads)                           \
  fused_attention_##W##_##T(const at::native::fused_attention::Problem p) {                        \
    at::device::fused_attention<cresset_##T, W>(p);                                                \
  }
CRESSET_FUSED_ATTENTION(64, f16)
CRESSET_FUSED_ATTENTION(64, bf16)
CRESSET_FUSED_ATTENTION(128, f16)
CRESSET_FUSED_ATTENTION(128, bf16)
#endif
