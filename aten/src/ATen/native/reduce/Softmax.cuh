// softmax and log_softmax with their gradients. A row of up to a thousand elements belongs to one
// warp, which reads it once into registers. A longer row belongs to one block, which finds maximum
// and sum in one pass (rescaling the sum whenever the maximum grows) while it copies the row to
// shared memory, and writes the result from there; rows that do not fit are read again. Rows that
// are not contiguous (another dimension than the last) belong to one thread each, neighbours side
// by side.
#include <ATen/cuda/device/Block.cuh>

namespace at::device {

// Running maximum and sum of exp(x - maximum).
template <class A> struct Online { A max, sum; };
template <class A> CRESSET_DEVICE_FN Online<A> online_identity() {
  return {-c10::numeric_limits<A>::infinity(), A(0)};
}
template <class A> CRESSET_DEVICE_FN void online_add(Online<A>& s, A x) {
  if (x > s.max) {
    s.sum = s.sum * fast_exp(s.max - x) + A(1);
    s.max = x;
  } else if (s.max == -c10::numeric_limits<A>::infinity()) {
    s.sum = x == x ? s.sum : x; // only -inf so far: nothing to add, but NaN stays NaN
  } else {
    s.sum += fast_exp(x - s.max);
  }
}
template <class A> CRESSET_DEVICE_FN Online<A> online_merge(Online<A> a, Online<A> b) {
  const A max = a.max > b.max ? a.max : b.max;
  if (max == -c10::numeric_limits<A>::infinity()) return {max, a.sum + b.sum};
  return {max, a.sum * fast_exp(a.max - max) + b.sum * fast_exp(b.max - max)};
}
template <class A> CRESSET_DEVICE_FN Online<A> online_warp(Online<A> s) {
  CRESSET_UNROLL
  for (int step = 16; step > 0; step >>= 1) {
    const Online<A> other = {__shfl_xor_sync(kAllLanes, s.max, step),
                             __shfl_xor_sync(kAllLanes, s.sum, step)};
    // The lower lane's part first, so that both lanes compute the same bits.
    s = (lane_id() & step) ? online_merge(other, s) : online_merge(s, other);
  }
  return s;
}

// exp(x - max) / sum, or its logarithm.
template <bool kLog, class A> struct Finish {
  A max, term; // term: 1 / sum, or log(sum)
  CRESSET_DEVICE_FN explicit Finish(Online<A> s)
      : max(s.max), term(kLog ? accurate_log(s.sum) : A(1) / s.sum) {}
  CRESSET_DEVICE_FN A operator()(A x) const {
    return kLog ? (x - max) - term : fast_exp(x - max) * term;
  }
};

// ---- one warp per row
template <class In, class Out, int kPack, int kPacks, bool kLog>
CRESSET_DEVICE_FN void softmax_warp(const In* in, Out* out, long rows, int n) {
  using A = opmath_t<In>;
  const long row = static_cast<long>(blockIdx.x) * (blockDim.x >> 5) + warp_id();
  if (row >= rows) return;
  const In* x = in + row * n;
  A v[kPacks][kPack];
  A max = -c10::numeric_limits<A>::infinity();
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    Pack<In, kPack> loaded;
    if (column < n) loaded = load_pack<kPack>(x + column);
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      v[p][j] = column < n ? convert<A>(loaded.v[j]) : -c10::numeric_limits<A>::infinity();
      max = Larger()(max, v[p][j]);
    }
  }
  max = warp_fold(max, Larger());
  A sum = 0;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const bool mine = (p * 32 + lane_id()) * kPack < n;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      const A e = fast_exp(v[p][j] - max);
      if (!kLog) v[p][j] = e;
      sum += mine ? e : A(0);
    }
  }
  sum = warp_sum(sum);
  const A term = kLog ? accurate_log(sum) : A(1) / sum;
  Out* y = out + row * n;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    if (column >= n) continue;
    Pack<Out, kPack> result;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j)
      result.v[j] = convert<Out>(kLog ? (v[p][j] - max) - term : v[p][j] * term);
    store_pack<kPack>(y + column, result);
  }
}

// ---- one block per row
// The first pass leaves the row in `kept`, in shared memory, where it fits: the second pass then
// reads no memory. A thread meets the same elements in both.
template <class In, int kPack> struct OnlineWalk {
  using A = opmath_t<In>;
  const In* x;
  In* kept; // null: the row does not fit
  Online<A> s;
  CRESSET_DEVICE_FN void one(long i) {
    if (kept) kept[i] = x[i];
    online_add(s, convert<A>(x[i]));
  }
  CRESSET_DEVICE_FN void pack(long i) {
    const Pack<In, kPack> p = load_pack<kPack>(x + i);
    if (kept) store_pack<kPack>(kept + i, p);
    A max = convert<A>(p.v[0]);
    CRESSET_UNROLL
    for (int j = 1; j < kPack; ++j) max = Larger()(max, convert<A>(p.v[j]));
    if (max > s.max) { // one rescaling for the whole pack
      s.sum = s.sum * fast_exp(s.max - max);
      s.max = max;
    }
    const bool empty = s.max == -c10::numeric_limits<A>::infinity();
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      const A v = convert<A>(p.v[j]);
      s.sum += empty ? (v == v ? A(0) : v) : fast_exp(v - s.max);
    }
  }
};
template <class In, class Out, int kPack, bool kLog> struct WriteWalk {
  using A = opmath_t<In>;
  const In* x;
  Out* y;
  Finish<kLog, A> finish;
  CRESSET_DEVICE_FN void one(long i) { y[i] = convert<Out>(finish(convert<A>(x[i]))); }
  CRESSET_DEVICE_FN void pack(long i) {
    const Pack<In, kPack> p = load_pack<kPack>(x + i);
    Pack<Out, kPack> r;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) r.v[j] = convert<Out>(finish(convert<A>(p.v[j])));
    // The output's row lies as the input's when both start alike; else element by element.
    constexpr int kBytes = sizeof(Out) * kPack < 16 ? sizeof(Out) * kPack : 16;
    if ((reinterpret_cast<unsigned long>(y + i) & (kBytes - 1)) == 0) {
      store_pack<kPack>(y + i, r);
    } else {
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j) y[i + j] = r.v[j];
    }
  }
};

template <class In, class Out, bool kLog>
CRESSET_DEVICE_FN void softmax_block(const In* in, Out* out, long n, int keep) {
  using A = opmath_t<In>;
  constexpr int kPack = 16 / sizeof(In);
  CRESSET_SHARED A maxima[32], sums[32];
  CRESSET_DYNAMIC_SHARED(In, buffer);
  const In* x = in + blockIdx.x * n;
  // The copy lies as the row does relative to 16 bytes.
  In* kept = keep ? buffer + (reinterpret_cast<unsigned long>(x) & 15) / sizeof(In) : nullptr;
  OnlineWalk<In, kPack> walk{x, kept, online_identity<A>()};
  walk_row<kPack>(x, n, threadIdx.x, blockDim.x, walk);
  Online<A> s = online_warp(walk.s);
  if (lane_id() == 0) {
    maxima[warp_id()] = s.max;
    sums[warp_id()] = s.sum;
  }
  __syncthreads();
  s = online_identity<A>();
  if (lane_id() < static_cast<int>(blockDim.x >> 5)) s = {maxima[lane_id()], sums[lane_id()]};
  s = online_warp(s);
  const In* again = keep ? kept : x;
  WriteWalk<In, Out, kPack, kLog> write{again, out + blockIdx.x * n, Finish<kLog, A>(s)};
  walk_row<kPack>(again, n, threadIdx.x, blockDim.x, write);
}

// ---- one thread per row, `inner` rows side by side
template <class In, class Out, bool kLog>
CRESSET_DEVICE_FN void softmax_columns(const In* in, Out* out, long lines, long n, long inner) {
  using A = opmath_t<In>;
  const long line = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const long start = line / inner * n * inner + line % inner;
  Online<A> s = online_identity<A>();
  for (long i = 0; i < n; ++i) online_add(s, convert<A>(in[start + i * inner]));
  const Finish<kLog, A> finish(s);
  for (long i = 0; i < n; ++i)
    out[start + i * inner] = convert<Out>(finish(convert<A>(in[start + i * inner])));
}

// ---- gradients: y (g - sum(g y)), or g - exp(y) sum(g) for the logarithm
template <bool kLog, class A> CRESSET_DEVICE_FN A gradient_term(A g, A y) {
  return kLog ? g : g * y;
}
template <bool kLog, class A> CRESSET_DEVICE_FN A gradient_value(A g, A y, A sum) {
  return kLog ? g - fast_exp(y) * sum : y * (g - sum);
}

// `In` is the type of gradient and output, `Out` that of the input.
template <class In, class Out, int kPack, int kPacks, bool kLog> CRESSET_DEVICE_FN void
softmax_backward_warp(const In* grad, const In* output, Out* out, long rows, int n) {
  using A = opmath_t<In>;
  const long row = static_cast<long>(blockIdx.x) * (blockDim.x >> 5) + warp_id();
  if (row >= rows) return;
  A g[kPacks][kPack], y[kPacks][kPack];
  A sum = 0;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    if (column >= n) continue;
    const Pack<In, kPack> a = load_pack<kPack>(grad + row * n + column);
    const Pack<In, kPack> b = load_pack<kPack>(output + row * n + column);
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      g[p][j] = convert<A>(a.v[j]);
      y[p][j] = convert<A>(b.v[j]);
      sum += gradient_term<kLog>(g[p][j], y[p][j]);
    }
  }
  sum = warp_sum(sum);
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * 32 + lane_id()) * kPack;
    if (column >= n) continue;
    Pack<Out, kPack> result;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j)
      result.v[j] = convert<Out>(gradient_value<kLog>(g[p][j], y[p][j], sum));
    store_pack<kPack>(out + row * n + column, result);
  }
}

template <class In, class Out, bool kLog> CRESSET_DEVICE_FN void
softmax_backward_block(const In* grad, const In* output, Out* out, long n, int packed) {
  using A = opmath_t<In>;
  constexpr int kPack = 16 / sizeof(In);
  CRESSET_SHARED A scratch[32];
  const In *g = grad + blockIdx.x * n, *y = output + blockIdx.x * n;
  Out* to = out + blockIdx.x * n;
  A sum = 0;
  const long packs = packed ? n / kPack : 0;
  for (long p = threadIdx.x; p < packs; p += blockDim.x) {
    const Pack<In, kPack> a = load_pack<kPack>(g + p * kPack), b = load_pack<kPack>(y + p * kPack);
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j)
      sum += gradient_term<kLog>(convert<A>(a.v[j]), convert<A>(b.v[j]));
  }
  for (long i = packs * kPack + threadIdx.x; i < n; i += blockDim.x)
    sum += gradient_term<kLog>(convert<A>(g[i]), convert<A>(y[i]));
  sum = block_sum(sum, scratch);
  for (long p = threadIdx.x; p < packs; p += blockDim.x) {
    const Pack<In, kPack> a = load_pack<kPack>(g + p * kPack), b = load_pack<kPack>(y + p * kPack);
    Pack<Out, kPack> r;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j)
      r.v[j] = convert<Out>(gradient_value<kLog>(convert<A>(a.v[j]), convert<A>(b.v[j]), sum));
    store_pack<kPack>(to + p * kPack, r);
  }
  for (long i = packs * kPack + threadIdx.x; i < n; i += blockDim.x)
    to[i] = convert<Out>(gradient_value<kLog>(convert<A>(g[i]), convert<A>(y[i]), sum));
}

template <class In, class Out, bool kLog>
CRESSET_DEVICE_FN void softmax_backward_columns(const In* grad, const In* output, Out* out,
                                                long lines, long n, long inner) {
  using A = opmath_t<In>;
  const long line = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const long start = line / inner * n * inner + line % inner;
  A sum = 0;
  for (long i = 0; i < n; ++i)
    sum += gradient_term<kLog>(convert<A>(grad[start + i * inner]),
                               convert<A>(output[start + i * inner]));
  for (long i = 0; i < n; ++i)
    out[start + i * inner] = convert<Out>(gradient_value<kLog>(
        convert<A>(grad[start + i * inner]), convert<A>(output[start + i * inner]), sum));
}

} // namespace at::device

// Names: softmax_<form>_<in>_<out>; forms of the warp kernel say how many packs of how many
// elements a lane holds ("v" packs of 16 bytes of the wider type, "s" single elements).
#define CRESSET_SOFTMAX_WARP(op, log, form, pack, packs, In, Out)                                  \
  CRESSET_KERNEL(128)                                                                              \
  op##_##form##_##In##_##Out(const cresset_##In* in, cresset_##Out* out, long rows, int n) {       \
    at::device::softmax_warp<cresset_##In, cresset_##Out, pack, packs, log>(in, out, rows, n);     \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  op##_backward_##form##_##In##_##Out(const cresset_##Out* g, const cresset_##Out* y,              \
                                      cresset_##In* out, long rows, int n) {                       \
    at::device::softmax_backward_warp<cresset_##Out, cresset_##In, pack, packs, log>(g, y, out,    \
                                                                                     rows, n);     \
  }
#define CRESSET_SOFTMAX_OP(op, log, V, In, Out)                                                    \
  CRESSET_SOFTMAX_WARP(op, log, s4, 1, 4, In, Out)                                                 \
  CRESSET_SOFTMAX_WARP(op, log, s32, 1, 32, In, Out)                                               \
  CRESSET_SOFTMAX_WARP(op, log, v2, V, 2, In, Out)                                                 \
  CRESSET_SOFTMAX_WARP(op, log, v8, V, 8, In, Out)                                                 \
  CRESSET_KERNEL(1024)                                                                             \
  op##_block_##In##_##Out(const cresset_##In* in, cresset_##Out* out, long n, int keep) {          \
    at::device::softmax_block<cresset_##In, cresset_##Out, log>(in, out, n, keep);                 \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  op##_columns_##In##_##Out(const cresset_##In* in, cresset_##Out* out, long lines, long n,        \
                            long inner) {                                                          \
    at::device::softmax_columns<cresset_##In, cresset_##Out, log>(in, out, lines, n, inner);       \
  }                                                                                                \
  CRESSET_KERNEL(512)                                                                              \
  op##_backward_block_##In##_##Out(const cresset_##Out* g, const cresset_##Out* y,                 \
                                   cresset_##In* out, long n, int packed) {                        \
    at::device::softmax_backward_block<cresset_##Out, cresset_##In, log>(g, y, out, n, packed);    \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  op##_backward_columns_##In##_##Out(const cresset_##Out* g, const cresset_##Out* y,               \
                                     cresset_##In* out, long lines, long n, long inner) {          \
    at::device::softmax_backward_columns<cresset_##Out, cresset_##In, log>(g, y, out, lines, n,    \
                                                                           inner);                 \
  }
#define CRESSET_SOFTMAX(V, In, Out)                                                                \
  CRESSET_SOFTMAX_OP(softmax, false, V, In, Out)                                                   \
  CRESSET_SOFTMAX_OP(log_softmax, true, V, In, Out)

CRESSET_SOFTMAX(4, f32, f32)
CRESSET_SOFTMAX(2, f64, f64)
CRESSET_SOFTMAX(8, f16, f16)
CRESSET_SOFTMAX(8, bf16, bf16)
CRESSET_SOFTMAX(4, f16, f32)
CRESSET_SOFTMAX(4, bf16, f32)
