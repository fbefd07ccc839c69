// Every operator that finds elements by index tensors, in one form: a set of positions, for each of
// which the index tensors name a place in the indexed tensor, times a slice of elements at each
// place. The other operand (result, values, source) is walked along, so gather, scatter,
// index_select, advanced indexing and their relatives are the same three kernels: read, write, and
// combine.
//
// Combining (scatter_add, index_put with accumulate, the gradient of an embedding) must not depend
// on the order of blocks: the positions are sorted by place first, and one thread combines all
// positions of a place in their order.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/cuda/device/Bytes.cuh>
#include <ATen/cuda/device/ErrorSlot.cuh>
#include <ATen/native/index/Indexing.args.h>

namespace at::device {

// q and r with n = q d + r, by 32-bit division where both fit: the 64-bit one costs several times
// more.
struct Quotient {
  long q, r;
  CRESSET_DEVICE_FN Quotient(long n, long d) {
    if (((n | d) >> 31) == 0) {
      const unsigned small = static_cast<unsigned>(n) / static_cast<unsigned>(d);
      q = small;
      r = static_cast<unsigned>(n) - small * static_cast<unsigned>(d);
    } else {
      q = n / d;
      r = n - q * d;
    }
  }
};

CRESSET_DEVICE_FN DualWalk::Offsets DualWalk::offsets(long i) const {
  if (ndim == 0) return {0, 0};
  return ndim == 1 ? Offsets{i * a[0], i * b[0]} : offsets_of_several(i);
}

__device__ __noinline__ DualWalk::Offsets DualWalk::offsets_of_several(long i) const {
  Offsets r = {0, 0};
  for (int d = ndim - 1; d > 0; --d) {
    const Quotient by(i, sizes[d]);
    r.a += by.r * a[d];
    r.b += by.r * b[d];
    i = by.q;
  }
  return {r.a + i * a[0], r.b + i * b[0]};
}

CRESSET_DEVICE_FN DualWalk::Offsets IndexPlan::place(long p) const {
  long coordinate[kIndexDims];
  DualWalk::Offsets found = {0, 0};
  CRESSET_UNROLL
  for (int d = kIndexDims - 1; d >= 0; --d) {
    coordinate[d] = 0;
    if (d >= positions.ndim) continue;
    coordinate[d] = p;
    if (d > 0) {
      const Quotient by(p, positions.sizes[d]);
      coordinate[d] = by.r;
      p = by.q;
    }
    found.a += coordinate[d] * positions.a[d];
    found.b += coordinate[d] * positions.b[d];
  }
  for (int k = 0; k < indices; ++k) {
    const IndexOperand& operand = index[k];
    long from = 0;
    CRESSET_UNROLL
    for (int d = 0; d < kIndexDims; ++d)
      if (d < positions.ndim) from += coordinate[d] * operand.strides[d];
    long i = operand.narrow ? static_cast<const int*>(operand.data)[from]
                            : static_cast<const long*>(operand.data)[from];
    if (wraps)
      i = check.wrapped(i, operand.bound, operand.dim);
    else if (!check.within(i, operand.bound, operand.dim))
      i = -1;
    if (i < 0) return {-1, 0};
    found.a += i * operand.stride;
  }
  return found;
}

CRESSET_DEVICE_FN DualWalk::Offsets IndexPlan::element(long i) const {
  if (slices.count == 1) return place(i);
  const Quotient by(i, slices.count);
  const DualWalk::Offsets found = place(by.q);
  const DualWalk::Offsets slice = slices.offsets(by.r);
  return found.a < 0 ? found : DualWalk::Offsets{found.a + slice.a, found.b + slice.b};
}

template <class T> CRESSET_DEVICE_FN void index_read(const T* self, T* out, const IndexPlan& plan) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= plan.positions.count * plan.slices.count) return;
  const DualWalk::Offsets found = plan.element(i);
  if (found.a >= 0) out[found.b] = self[found.a];
}

template <class T>
CRESSET_DEVICE_FN void index_write(T* self, const T* values, const IndexPlan& plan) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= plan.positions.count * plan.slices.count) return;
  const DualWalk::Offsets found = plan.element(i);
  if (found.a >= 0) self[found.a] = values[found.b];
}

// Rows of `units` pieces of 16 bytes: out[r] = self[index[r]].
CRESSET_DEVICE_FN void index_rows(const uint4* self, const void* index, int narrow, uint4* out,
                                  long rows, long units, long bound, int wraps,
                                  const IndexCheck& check) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * units) return;
  const long r = rows * units <= 0x7fffffff
                     ? static_cast<unsigned>(i) / static_cast<unsigned>(units)
                     : i / units;
  long from = narrow ? static_cast<const int*>(index)[r] : static_cast<const long*>(index)[r];
  if (wraps)
    from = check.wrapped(from, bound, 0);
  else if (!check.within(from, bound, 0))
    from = -1;
  if (from >= 0) out[i] = self[from * units + (i - r * units)];
}

// ---- combining
// Sort keys of all positions; those out of range, or at `skipped`, come last.
CRESSET_DEVICE_FN void index_keys(const IndexPlan& plan, unsigned long* keys, long skipped) {
  const long p = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (p >= plan.positions.count) return;
  const long place = plan.place(p).a;
  keys[p] = place < 0 || place == skipped ? ~0ul : static_cast<unsigned long>(place);
}

enum Combine : int { kCombineSum, kCombineProduct, kCombineMin, kCombineMax, kCombineMean };

// Complex numbers have no order, and of bool the sum is "or".
template <class A> CRESSET_DEVICE_FN A combine(int how, A x, A y) {
  if constexpr (std::is_same_v<A, bool>) {
    return how == kCombineProduct || how == kCombineMin ? x && y : x || y;
  } else {
    if (how == kCombineProduct) return x * y;
    if constexpr (!c10::is_complex_v<A>) {
      if (how == kCombineMin) return x < y || x != x ? x : y;
      if (how == kCombineMax) return x > y || x != x ? x : y;
    }
    return x + y;
  }
}

// sum / count; integers round down.
template <class A> CRESSET_DEVICE_FN A divided(A sum, long count) {
  if constexpr (std::is_same_v<A, bool>) {
    return sum;
  } else if constexpr (c10::is_complex_v<A>) {
    using R = typename A::value_type;
    return A(sum.real_ / static_cast<R>(count), sum.imag_ / static_cast<R>(count));
  } else if constexpr (std::is_integral_v<A> && static_cast<A>(-1) > static_cast<A>(0)) {
    return static_cast<A>(sum / static_cast<unsigned long>(count));
  } else if constexpr (std::is_integral_v<A>) {
    const long wide = static_cast<long>(sum), q = wide / count;
    return static_cast<A>(wide % count != 0 && wide < 0 ? q - 1 : q);
  } else {
    return sum / static_cast<A>(count);
  }
}

// `scale` multiplies the source, `by_count` divides the result by the number of positions.
template <class T>
CRESSET_DEVICE_FN void index_combine(T* self, const T* source, const unsigned long* keys,
                                     const unsigned* order, const IndexPlan& plan, int how,
                                     int include_self, int by_count, double scale) {
  using A = opmath_t<T>;
  const long n = plan.positions.count, width = plan.slices.count;
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n * width) return;
  const Quotient by(i, width);
  const long first = by.q;
  const unsigned long key = keys[first];
  if (key == ~0ul || (first > 0 && keys[first - 1] == key)) return; // not the first of its place
  const DualWalk::Offsets slice = plan.slices.offsets(by.r);
  T* to = self + key + slice.a;
  const auto value = [&](long position) {
    const A v = convert<A>(source[plan.positions.offsets(order[position]).b + slice.b]);
    return scale == 1.0 ? v : static_cast<A>(v * convert<A>(scale));
  };
  A result = value(first);
  long count = 1;
  // Several at a time: their loads are in flight together, their sum is taken in order.
  constexpr int kAhead = 8;
  for (bool more = true; more;) {
    const long position = first + count;
    A next[kAhead];
    int same = 0;
    CRESSET_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const bool mine = position + k < n && keys[position + k] == key;
      same += mine;
      next[k] = mine ? value(position + k) : result;
    }
    CRESSET_UNROLL
    for (int k = 0; k < kAhead; ++k)
      if (k < same) result = combine(how, result, next[k]);
    count += same;
    more = same == kAhead;
  }
  if (include_self) result = combine(how, convert<A>(*to), result);
  if (how == kCombineMean || by_count)
    result = divided(result, count + (by_count ? 0 : include_self));
  *to = convert<T>(result);
}

// ---- positions of true elements
constexpr int kTrueTile = 2048;

// How many of a tile's bytes are not zero.
CRESSET_DEVICE_FN void true_counts(const unsigned char* mask, unsigned* counts, long n) {
  CRESSET_SHARED int scratch[32];
  const long start = static_cast<long>(blockIdx.x) * kTrueTile;
  int found = 0;
  for (int i = threadIdx.x; i < kTrueTile; i += blockDim.x)
    if (start + i < n) found += mask[start + i] != 0;
  found = block_sum(found, scratch);
  if (threadIdx.x == 0) counts[blockIdx.x] = found;
}

// Their positions in order; counts[tile] are the trues before the tile.
CRESSET_DEVICE_FN void true_places(const unsigned char* mask, const unsigned* counts, long* places,
                                   long n) {
  CRESSET_SHARED int before[32];
  const long start = static_cast<long>(blockIdx.x) * kTrueTile;
  long position = counts[blockIdx.x];
  for (int i = threadIdx.x; i < kTrueTile; i += blockDim.x) {
    const bool is = start + i < n && mask[start + i] != 0;
    const unsigned votes = __ballot_sync(kAllLanes, is);
    if (lane_id() == 0) before[warp_id()] = __popc(votes);
    __syncthreads();
    int rank = __popc(votes & ((1u << lane_id()) - 1)), all = 0;
    for (int w = 0; w < static_cast<int>(blockDim.x >> 5); ++w) {
      if (w < warp_id()) rank += before[w];
      all += before[w];
    }
    if (is) places[position + rank] = start + i;
    position += all;
    __syncthreads();
  }
}

// columns[d * rows + r] is coordinate d of place r.
CRESSET_DEVICE_FN void true_coordinates(const long* places, long* columns, long rows,
                                        const DualWalk& shape) {
  const long r = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  long rest = places[r];
  for (int d = shape.ndim - 1; d >= 0; --d) {
    columns[d * rows + r] = rest % shape.sizes[d];
    rest /= shape.sizes[d];
  }
}

} // namespace at::device

#define CRESSET_INDEX_MOVE(T)                                                                      \
  CRESSET_KERNEL(256)                                                                              \
  index_read_##T(const cresset_##T* self, cresset_##T* out,                                        \
                 const __grid_constant__ at::device::IndexPlan plan) {                             \
    at::device::index_read(self, out, plan);                                                       \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  index_write_##T(cresset_##T* self, const cresset_##T* values,                                    \
                  const __grid_constant__ at::device::IndexPlan plan) {                            \
    at::device::index_write(self, values, plan);                                                   \
  }
CRESSET_INDEX_MOVE(b1)
CRESSET_INDEX_MOVE(b2)
CRESSET_INDEX_MOVE(b4)
CRESSET_INDEX_MOVE(b8)
CRESSET_INDEX_MOVE(b16)

CRESSET_KERNEL(256)
index_rows(const uint4* self, const void* index, int narrow, uint4* out, long rows, long units,
           long bound, int wraps, at::device::IndexCheck check) {
  at::device::index_rows(self, index, narrow, out, rows, units, bound, wraps, check);
}
CRESSET_KERNEL(256)
index_keys(const __grid_constant__ at::device::IndexPlan plan, unsigned long* keys, long skipped) {
  at::device::index_keys(plan, keys, skipped);
}

#define CRESSET_INDEX_COMBINE(T)                                                                   \
  CRESSET_KERNEL(256)                                                                              \
  index_combine_##T(cresset_##T* self, const cresset_##T* source, const unsigned long* keys,       \
                    const unsigned* order, const __grid_constant__ at::device::IndexPlan plan,     \
                    int how, int include_self, int by_count, double scale) {                       \
    at::device::index_combine(self, source, keys, order, plan, how, include_self, by_count,        \
                              scale);                                                              \
  }
CRESSET_INDEX_COMBINE(f32)
CRESSET_INDEX_COMBINE(f64)
CRESSET_INDEX_COMBINE(f16)
CRESSET_INDEX_COMBINE(bf16)
CRESSET_INDEX_COMBINE(u8)
CRESSET_INDEX_COMBINE(u16)
CRESSET_INDEX_COMBINE(u32)
CRESSET_INDEX_COMBINE(u64)
CRESSET_INDEX_COMBINE(i8)
CRESSET_INDEX_COMBINE(i16)
CRESSET_INDEX_COMBINE(i32)
CRESSET_INDEX_COMBINE(i64)
CRESSET_INDEX_COMBINE(bool)
CRESSET_INDEX_COMBINE(c64)
CRESSET_INDEX_COMBINE(c128)

CRESSET_KERNEL(256) true_counts(const unsigned char* mask, unsigned* counts, long n) {
  at::device::true_counts(mask, counts, n);
}
CRESSET_KERNEL(256)
true_places(const unsigned char* mask, const unsigned* counts, long* places, long n) {
  at::device::true_places(mask, counts, places, n);
}
CRESSET_KERNEL(256)
true_coordinates(const long* places, long* columns, long rows,
                 const __grid_constant__ at::device::DualWalk shape) {
  at::device::true_coordinates(places, columns, rows, shape);
}
