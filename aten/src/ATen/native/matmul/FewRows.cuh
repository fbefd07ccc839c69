// x W' + b for a few rows of x, as a model that writes one token at a time asks for: the time is
// that of reading W once. A warp computes one column of the result for all rows; the tiles of a
// library for large products would be mostly empty.
#include <ATen/cuda/device/Block.cuh>

namespace at::device {

// y[r][c] = sum over i of x[r][i] w[c][i], plus bias[c]; k is a multiple of a pack.
template <class T, int kRows>
CRESSET_DEVICE_FN void few_rows(const T* x, const T* w, const T* bias, T* y, long n, long k) {
  using A = opmath_t<T>;
  constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  constexpr int kAhead = 4; // packs of W in flight
  constexpr long kStep = 32 * kPack;
  const long column = static_cast<long>(blockIdx.x) * (blockDim.x >> 5) + warp_id();
  if (column >= n) return;
  A sum[kRows];
  CRESSET_UNROLL
  for (int r = 0; r < kRows; ++r) sum[r] = 0;
  const auto add = [&](const Pack<T, kPack>& weights, long i) {
    CRESSET_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Pack<T, kPack> values = load_pack<kPack>(x + r * k + i);
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j)
        sum[r] = ::fma(convert<A>(values.v[j]), convert<A>(weights.v[j]), sum[r]);
    }
  };
  const T* row = w + column * k;
  long i = lane_id() * kPack;
  for (; i + (kAhead - 1) * kStep < k; i += kAhead * kStep) {
    Pack<T, kPack> ahead[kAhead];
    CRESSET_UNROLL
    for (int u = 0; u < kAhead; ++u) ahead[u] = load_pack<kPack>(row + i + u * kStep);
    CRESSET_UNROLL
    for (int u = 0; u < kAhead; ++u) add(ahead[u], i + u * kStep);
  }
  for (; i < k; i += kStep) add(load_pack<kPack>(row + i), i);
  CRESSET_UNROLL
  for (int r = 0; r < kRows; ++r) {
    A total = warp_sum(sum[r]);
    if (bias != nullptr) total += convert<A>(bias[column]);
    if (lane_id() == 0) y[r * n + column] = convert<T>(total);
  }
}

} // namespace at::device

#define CRESSET_FEW_ROWS(rows, T)                                                                  \
  CRESSET_KERNEL(128)                                                                              \
  few_rows_##rows##_##T(const cresset_##T* x, const cresset_##T* w, const cresset_##T* bias,       \
                        cresset_##T* y, long n, long k) {                                          \
    at::device::few_rows<cresset_##T, rows>(x, w, bias, y, n, k);                                  \
  }
#define CRESSET_FEW_ROWS_OF(T)                                                                     \
  CRESSET_FEW_ROWS(1, T)                                                                           \
  CRESSET_FEW_ROWS(2, T)                                                                           \
  CRESSET_FEW_ROWS(3, T)                                                                           \
  CRESSET_FEW_ROWS(4, T)
CRESSET_FEW_ROWS_OF(f32)
CRESSET_FEW_ROWS_OF(f16)
CRESSET_FEW_ROWS_OF(bf16)
