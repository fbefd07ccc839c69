// Products of sparse with dense matrices on CUDA. A warp has one row of the sparse matrix and some
// columns of the result, and goes through the row's elements in order, so that sums repeat to the
// last bit.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/cuda/device/ErrorSlot.cuh>
#include <ATen/native/sparse/Product.args.h>

namespace at::device {

CRESSET_DEVICE_FN long warp_of_grid() {
  return (static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5;
}

// The elements of a row; nothing outside of memory, whatever the starts say.
struct RowSpan {
  long begin, end;
  CRESSET_DEVICE_FN RowSpan(const SparseRows& a, long row) {
    begin = a.starts[row] < 0 ? 0 : a.starts[row];
    end = a.starts[row + 1] > a.nnz ? a.nnz : a.starts[row + 1];
  }
};

template <class T> CRESSET_DEVICE_FN void sparse_times_dense(const T* values, const T* dense,
                                                             T* out, const SparseRows& a) {
  using A = opmath_t<T>;
  constexpr int kEach = kSparseTile / 32;
  const long tiles = (a.width + kSparseTile - 1) / kSparseTile;
  const long warp = warp_of_grid(), row = warp / tiles;
  if (row >= a.rows) return;
  const long first = (warp - row * tiles) * kSparseTile + lane_id();
  A sum[kEach] = {};
  const RowSpan span(a, row);
  for (long base = span.begin; base < span.end; base += 32) {
    const long mine = base + lane_id();
    int column = -1;
    A value = A(0);
    if (mine < span.end && a.check.within(a.columns[mine], a.bound, 1)) {
      column = static_cast<int>(a.columns[mine]);
      value = convert<A>(values[mine]);
    }
    const int count = span.end - base < 32 ? static_cast<int>(span.end - base) : 32;
    for (int k = 0; k < count; ++k) {
      const int c = __shfl_sync(kAllLanes, column, k);
      const A v = __shfl_sync(kAllLanes, value, k);
      if (c < 0) continue;
      const T* from = dense + c * a.width;
      CRESSET_UNROLL
      for (int u = 0; u < kEach; ++u)
        if (first + u * 32 < a.width) sum[u] += v * convert<A>(from[first + u * 32]);
    }
  }
  CRESSET_UNROLL
  for (int u = 0; u < kEach; ++u)
    if (first + u * 32 < a.width) out[row * a.width + first + u * 32] = convert<T>(sum[u]);
}

// A dense matrix of one column: the lanes share the elements of the row.
template <class T> CRESSET_DEVICE_FN void sparse_times_vector(const T* values, const T* dense,
                                                              T* out, const SparseRows& a) {
  using A = opmath_t<T>;
  const long row = warp_of_grid();
  if (row >= a.rows) return;
  A sum = A(0);
  const RowSpan span(a, row);
  for (long i = span.begin + lane_id(); i < span.end; i += 32)
    if (a.check.within(a.columns[i], a.bound, 1))
      sum += convert<A>(values[i]) * convert<A>(dense[a.columns[i]]);
  sum = warp_sum(sum);
  if (lane_id() == 0) out[row] = convert<T>(sum);
}

// out[i] = left[row of i] . right[column of i], rows of `width` elements; a warp per element.
template <class T> CRESSET_DEVICE_FN void
sparse_dots(const T* left, const T* right, const long* rows, T* out, const SparseRows& a) {
  using A = opmath_t<T>;
  const long i = warp_of_grid();
  if (i >= a.nnz || !a.check.within(rows[i], a.rows, 0) ||
      !a.check.within(a.columns[i], a.bound, 1))
    return;
  const T* x = left + rows[i] * a.width;
  const T* y = right + a.columns[i] * a.width;
  A sum = A(0);
  for (long k = lane_id(); k < a.width; k += 32) sum += convert<A>(x[k]) * convert<A>(y[k]);
  sum = warp_sum(sum);
  if (lane_id() == 0) out[i] = convert<T>(sum);
}

} // namespace at::device

#define CRESSET_SPARSE_PRODUCT(T)                                                                  \
  CRESSET_KERNEL(256)                                                                              \
  sparse_times_dense_##T(const cresset_##T* values, const cresset_##T* dense, cresset_##T* out,    \
                         const __grid_constant__ at::device::SparseRows a) {                       \
    at::device::sparse_times_dense(values, dense, out, a);                                         \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  sparse_times_vector_##T(const cresset_##T* values, const cresset_##T* dense, cresset_##T* out,   \
                          const __grid_constant__ at::device::SparseRows a) {                      \
    at::device::sparse_times_vector(values, dense, out, a);                                        \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  sparse_dots_##T(const cresset_##T* left, const cresset_##T* right, const long* rows,             \
                  cresset_##T* out, const __grid_constant__ at::device::SparseRows a) {            \
    at::device::sparse_dots(left, right, rows, out, a);                                            \
  }
CRESSET_SPARSE_PRODUCT(f32)
CRESSET_SPARSE_PRODUCT(f64)
CRESSET_SPARSE_PRODUCT(f16)
CRESSET_SPARSE_PRODUCT(bf16)
