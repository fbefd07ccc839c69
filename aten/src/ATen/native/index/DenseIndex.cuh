// gather and scatter_add where all tensors lie dense: (outer, n, inner) with an index for every
// element and the indexed dimension in the middle. No element pays a division, and where rows are
// short enough (inner is 1) they are read or summed in shared memory.
//
// Sums do not depend on the order in which blocks run, without sorting: one owner walks a line (a
// row where inner is 1, otherwise a column) from its first element to its last. Many columns have a
// thread each, in memory; rows a warp each, which keeps the sums in shared memory. Columns too few
// to fill the GPU are made rows first.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/cuda/device/Bytes.cuh>
#include <ATen/cuda/device/ErrorSlot.cuh>
#include <ATen/native/index/DenseIndex.args.h>

namespace at::device {

// kDenseAhead elements of a row, every kDenseThreads-th from `first` on; `source(i, c)` is the
// element at place i of column c.
template <class T, class F> CRESSET_DEVICE_FN void
gather_part(const long* index, T* out, long first, const DenseIndex& d, const F& source) {
  long place[kDenseAhead];
  T value[kDenseAhead] = {};
  CRESSET_UNROLL
  for (int u = 0; u < kDenseAhead; ++u) {
    const long i = first + u * kDenseThreads;
    place[u] = i < d.row ? index[i] : -1;
  }
  // Apart from the loads, which a call between them would make wait for each other.
  CRESSET_UNROLL
  for (int u = 0; u < kDenseAhead; ++u) {
    const bool is = first + u * kDenseThreads < d.row;
    if (is && !d.check.within(place[u], d.bound, d.dim)) place[u] = -1;
  }
  CRESSET_UNROLL
  for (int u = 0; u < kDenseAhead; ++u) {
    if (place[u] < 0) continue;
    unsigned c = 0;
    if (d.inner > 1) {
      const unsigned i = static_cast<unsigned>(first + u * kDenseThreads);
      c = i - d.inner_size.quotient(i) * d.inner_size.divisor;
    }
    value[u] = source(place[u], c);
  }
  CRESSET_UNROLL
  for (int u = 0; u < kDenseAhead; ++u)
    if (place[u] >= 0) out[first + u * kDenseThreads] = value[u];
}

template <class T> CRESSET_DEVICE_FN void gather_dense(const T* self, T* out, const DenseIndex& d) {
  const long outer = blockIdx.x / d.row_blocks, part = blockIdx.x - outer * d.row_blocks;
  const T* from = self + outer * d.other_row;
  gather_part(d.index + outer * d.row, out + outer * d.row,
              part * (kDenseThreads * kDenseAhead) + threadIdx.x, d,
              [&](long i, unsigned c) { return from[i * d.inner + c]; });
}

// A block per row, which it reads into shared memory first.
template <class T>
CRESSET_DEVICE_FN void gather_staged(const T* self, T* out, const DenseIndex& d) {
  CRESSET_DYNAMIC_SHARED(T, staged);
  const T* from = self + static_cast<long>(blockIdx.x) * d.other_row;
  const int length = static_cast<int>(d.bound);
  int i = threadIdx.x;
  for (; i + (kDenseAhead - 1) * kDenseThreads < length; i += kDenseAhead * kDenseThreads) {
    T value[kDenseAhead];
    CRESSET_UNROLL
    for (int u = 0; u < kDenseAhead; ++u) value[u] = from[i + u * kDenseThreads];
    CRESSET_UNROLL
    for (int u = 0; u < kDenseAhead; ++u) staged[i + u * kDenseThreads] = value[u];
  }
  for (; i < length; i += kDenseThreads) staged[i] = from[i];
  __syncthreads();
  const long start = static_cast<long>(blockIdx.x) * d.row;
  for (long first = threadIdx.x; first < d.row; first += kDenseThreads * kDenseAhead)
    gather_part(d.index + start, out + start, first, d,
                [&](long position, unsigned) { return staged[position]; });
}

// ---- sums
// A thread per column. Elements are taken in groups whose loads are in flight together; where two
// of a group go to one place, the later sees the sum of the earlier.
constexpr int kColumnGroup = 16;

template <class T> struct ColumnGroup {
  long place[kColumnGroup];
  T value[kColumnGroup];

  CRESSET_DEVICE_FN void load(const long* index, const T* source, int first, const DenseIndex& d) {
    CRESSET_UNROLL
    for (int u = 0; u < kColumnGroup; ++u) {
      const bool is = first + u < d.n;
      const long position = static_cast<long>(first + u) * d.inner;
      place[u] = is ? index[position] : -1;
      value[u] = is ? source[position] : T(0);
    }
  }
  CRESSET_DEVICE_FN void add_to(T* out, int first, const DenseIndex& d) {
    T sum[kColumnGroup];
    CRESSET_UNROLL
    for (int u = 0; u < kColumnGroup; ++u)
      if (first + u < d.n && !d.check.within(place[u], d.bound, d.dim)) place[u] = -1;
    CRESSET_UNROLL
    for (int u = 0; u < kColumnGroup; ++u) sum[u] = place[u] >= 0 ? out[place[u] * d.inner] : T(0);
    CRESSET_UNROLL
    for (int u = 0; u < kColumnGroup; ++u) {
      sum[u] += value[u];
      CRESSET_UNROLL
      for (int w = u + 1; w < kColumnGroup; ++w)
        if (place[w] == place[u]) sum[w] = sum[u];
    }
    CRESSET_UNROLL
    for (int u = 0; u < kColumnGroup; ++u)
      if (place[u] >= 0) out[place[u] * d.inner] = sum[u];
  }
};

template <class T>
CRESSET_DEVICE_FN void scatter_columns(T* self, const T* source, const DenseIndex& d) {
  const long column = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= d.columns) return;
  const long outer = column / d.inner, c = column - outer * d.inner;
  const long* index = d.index + outer * d.row + c;
  source += outer * d.row + c;
  self += outer * d.other_row + c;
  ColumnGroup<T> group, next;
  group.load(index, source, 0, d);
  for (int first = 0; first < d.n; first += kColumnGroup) {
    next.load(index, source, first + kColumnGroup, d);
    group.add_to(self, first, d);
    group = next;
  }
}

// A warp per row, whose sums lie in shared memory. Of lanes that go to one place the lower ones
// add first.
constexpr int kStagedGroup = 8;

template <class T> struct StagedGroup {
  long place[kStagedGroup];
  T value[kStagedGroup];

  CRESSET_DEVICE_FN void load(const long* index, const T* source, int start, const DenseIndex& d) {
    CRESSET_UNROLL
    for (int u = 0; u < kStagedGroup; ++u) {
      const int i = start + u * 32 + static_cast<int>(threadIdx.x);
      place[u] = i < d.n ? index[i] : -1;
      value[u] = i < d.n ? source[i] : T(0);
    }
  }
  template <class A> CRESSET_DEVICE_FN void add_to(A* sums, int start, const DenseIndex& d) {
    const int lane = threadIdx.x;
    CRESSET_UNROLL
    for (int u = 0; u < kStagedGroup; ++u) {
      const bool is = start + u * 32 + lane < d.n && d.check.within(place[u], d.bound, d.dim);
      const int to = is ? static_cast<int>(place[u]) : -1 - lane; // apart from all others
      const unsigned before = __match_any_sync(kAllLanes, to) & ((1u << lane) - 1);
      const int turn = __popc(before);
      for (int t = 0; __ballot_sync(kAllLanes, turn >= t) != 0; ++t) {
        if (is && turn == t) sums[to] = sums[to] + convert<A>(value[u]);
        __syncwarp();
      }
    }
  }
};

template <class T>
CRESSET_DEVICE_FN void scatter_staged(T* self, const T* source, const DenseIndex& d) {
  using A = opmath_t<T>;
  CRESSET_DYNAMIC_SHARED(A, sums);
  const int lane = threadIdx.x, length = static_cast<int>(d.bound);
  const long row = blockIdx.x;
  T* out = self + row * d.other_row;
  const long* index = d.index + row * d.row;
  source += row * d.row;
  StagedGroup<T> group, next;
  group.load(index, source, 0, d);
  CRESSET_NO_UNROLL
  for (int i = lane; i < length; i += 32 * kStagedGroup) {
    T value[kStagedGroup];
    CRESSET_UNROLL
    for (int u = 0; u < kStagedGroup; ++u)
      if (i + u * 32 < length) value[u] = out[i + u * 32];
    CRESSET_UNROLL
    for (int u = 0; u < kStagedGroup; ++u)
      if (i + u * 32 < length) sums[i + u * 32] = convert<A>(value[u]);
  }
  __syncwarp();
  for (int start = 0; start < d.n; start += 32 * kStagedGroup) {
    next.load(index, source, start + 32 * kStagedGroup, d);
    group.add_to(sums, start, d);
    group = next;
  }
  for (int i = lane; i < length; i += 32) out[i] = convert<T>(sums[i]);
}

} // namespace at::device

#define CRESSET_DENSE_GATHER(T)                                                                    \
  CRESSET_KERNEL(256)                                                                              \
  gather_dense_##T(const cresset_##T* self, cresset_##T* out,                                      \
                   const __grid_constant__ at::device::DenseIndex d) {                             \
    at::device::gather_dense(self, out, d);                                                        \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  gather_staged_##T(const cresset_##T* self, cresset_##T* out,                                     \
                    const __grid_constant__ at::device::DenseIndex d) {                            \
    at::device::gather_staged(self, out, d);                                                       \
  }
CRESSET_DENSE_GATHER(b1)
CRESSET_DENSE_GATHER(b2)
CRESSET_DENSE_GATHER(b4)
CRESSET_DENSE_GATHER(b8)
CRESSET_DENSE_GATHER(b16)

#define CRESSET_SCATTER_STAGED(T)                                                                  \
  CRESSET_KERNEL(32)                                                                               \
  scatter_staged_##T(cresset_##T* self, const cresset_##T* source,                                 \
                     const __grid_constant__ at::device::DenseIndex d) {                           \
    at::device::scatter_staged(self, source, d);                                                   \
  }
#define CRESSET_SCATTER_DENSE(T)                                                                   \
  CRESSET_SCATTER_STAGED(T)                                                                        \
  CRESSET_KERNEL(128)                                                                              \
  scatter_columns_##T(cresset_##T* self, const cresset_##T* source,                                \
                      const __grid_constant__ at::device::DenseIndex d) {                          \
    at::device::scatter_columns(self, source, d);                                                  \
  }
CRESSET_SCATTER_DENSE(f32)
CRESSET_SCATTER_DENSE(f64)
CRESSET_SCATTER_DENSE(i32)
CRESSET_SCATTER_DENSE(i64)
CRESSET_SCATTER_STAGED(f16)
CRESSET_SCATTER_STAGED(bf16)
