// From the exchanges of rows that an LU factorisation made to the order of the rows they lead to.
// The exchanges of one matrix depend on one another, so a thread does them all.
#include <ATen/cuda/device/Prelude.cuh>

CRESSET_KERNEL(128)
pivots_to_order(const int* pivots, int* order, long batch, int m, int k) {
  const long b = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (b >= batch) return;
  int* const own = order + b * m;
  const int* const swaps = pivots + b * k;
  for (int i = 0; i < m; ++i) own[i] = i;
  for (int i = 0; i < k; ++i) {
    const int other = swaps[i] - 1, kept = own[i];
    own[i] = own[other];
    own[other] = kept;
  }
}
