// Layer norm and RMS norm with their gradients. A row of up to a thousand elements belongs to one
// warp and is read once, into registers: the mean first, then the squares of the differences, as
// exact as two passes over memory. Longer rows belong to one block, in the same way; rows that are
// longer still, or do not split into packs, are read again from the caches.
//
// In the backward pass a warp keeps its share of the gradients of weight and bias in registers over
// all its rows, so that input and gradient are read once for all three results; each block leaves
// one partial row, and a second kernel adds the partial rows in order.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/native/norm/LayerNorm.args.h>

namespace at::device {

CRESSET_DEVICE_FN float inverse_root(float x) { return 1.0f / sqrtf(x); }
CRESSET_DEVICE_FN double inverse_root(double x) { return 1.0 / sqrt(x); }

// a + b rounded as by a kernel of its own: not contracted with what made a.
CRESSET_DEVICE_FN float added(float a, float b) { return __fadd_rn(a, b); }
CRESSET_DEVICE_FN double added(double a, double b) { return __dadd_rn(a, b); }
template <class T> CRESSET_DEVICE_FN T added_to(opmath_t<T> value, T sum) {
  return convert<T>(added(convert<opmath_t<T>>(convert<T>(value)), convert<opmath_t<T>>(sum)));
}

template <class T, class W> using NormForward = NormForwardArgs<T, W, opmath_t<T>>;
template <class T, class W> using NormBackward = NormBackwardArgs<T, W, opmath_t<T>>;

// Who holds a row in registers: a warp of a block of several, or the whole block.
template <class A> struct WarpTeam {
  CRESSET_DEVICE_FN long row() const {
    return static_cast<long>(blockIdx.x) * (blockDim.x >> 5) + warp_id();
  }
  CRESSET_DEVICE_FN int rank() const { return lane_id(); }
  CRESSET_DEVICE_FN int size() const { return 32; }
  CRESSET_DEVICE_FN A sum(A v) const { return warp_sum(v); }
};
template <class A> struct BlockTeam {
  A* scratch;
  CRESSET_DEVICE_FN long row() const { return blockIdx.x; }
  CRESSET_DEVICE_FN int rank() const { return threadIdx.x; }
  CRESSET_DEVICE_FN int size() const { return blockDim.x; }
  CRESSET_DEVICE_FN A sum(A v) const { return block_sum(v, scratch); }
};

template <class T, class W, int kPack, int kPacks, bool kRms, class Team>
CRESSET_DEVICE_FN void norm_held(const NormForward<T, W>& a, const Team& team) {
  using A = opmath_t<T>;
  const long row = team.row();
  if (row >= a.rows) return;
  const T* x = a.x + row * a.n;
  A v[kPacks][kPack];
  A sum = 0;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * team.size() + team.rank()) * kPack;
    if (column >= a.n) continue;
    const Pack<T, kPack> loaded = load_pack<kPack>(x + column);
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      v[p][j] = convert<A>(loaded.v[j]);
      sum += v[p][j];
    }
  }
  const A mean = kRms ? A(0) : team.sum(sum) / A(a.n);
  A squares = 0;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if ((p * team.size() + team.rank()) * kPack >= a.n) continue;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) squares += (v[p][j] - mean) * (v[p][j] - mean);
  }
  const A rstd = inverse_root(team.sum(squares) / A(a.n) + a.eps);
  T* y = a.y + row * a.n;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * team.size() + team.rank()) * kPack;
    if (column >= a.n) continue;
    Pack<W, kPack> w, b;
    if (a.weight) w = load_pack<kPack>(a.weight + column);
    if (!kRms && a.bias) b = load_pack<kPack>(a.bias + column);
    Pack<T, kPack> out;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      A r = (v[p][j] - mean) * rstd;
      if (a.weight) r *= convert<A>(w.v[j]);
      if (!kRms && a.bias) r += convert<A>(b.v[j]);
      out.v[j] = convert<T>(r);
    }
    store_pack<kPack>(y + column, out);
  }
  if (team.rank() == 0) {
    if (!kRms) a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
}

template <class T, class W, bool kRms>
CRESSET_DEVICE_FN void norm_block(const NormForward<T, W>& a) {
  using A = opmath_t<T>;
  CRESSET_SHARED A scratch[32];
  const long row = blockIdx.x;
  const T* x = a.x + row * a.n;
  A mean = 0;
  if (!kRms) {
    A sum = 0;
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) sum += convert<A>(x[i]);
    mean = block_sum(sum, scratch) / A(a.n);
  }
  A squares = 0;
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
    const A d = convert<A>(x[i]) - mean;
    squares += d * d;
  }
  const A rstd = inverse_root(block_sum(squares, scratch) / A(a.n) + a.eps);
  T* y = a.y + row * a.n;
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
    A r = (convert<A>(x[i]) - mean) * rstd;
    if (a.weight) r *= convert<A>(a.weight[i]);
    if (!kRms && a.bias) r += convert<A>(a.bias[i]);
    y[i] = convert<T>(r);
  }
  if (threadIdx.x == 0) {
    if (!kRms) a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
}

// ---- gradients: with u = g w and h = (x - mean) rstd,
//   dx = rstd (u - mean(u) - h mean(u h)), dw = sum over rows of g h, db = sum over rows of g;
// RMS norm has no mean(u).
template <class T, class W, int kPack, int kPacks, bool kRms>
CRESSET_DEVICE_FN void norm_backward_warp(const NormBackward<T, W>& a) {
  using A = opmath_t<T>;
  constexpr int kWarps = 4;
  A to_w[kPacks][kPack], to_b[kPacks][kPack];
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) to_w[p][j] = to_b[p][j] = 0;
  }
  for (long row = static_cast<long>(blockIdx.x) * kWarps + warp_id(); row < a.rows;
       row += static_cast<long>(gridDim.x) * kWarps) {
    const A mean = kRms ? A(0) : a.mean[row], rstd = a.rstd[row];
    A h[kPacks][kPack], u[kPacks][kPack];
    A sum_u = 0, sum_uh = 0;
    CRESSET_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      const int column = (p * 32 + lane_id()) * kPack;
      if (column >= a.n) continue;
      const Pack<T, kPack> gs = load_pack<kPack>(a.g + row * a.n + column);
      const Pack<T, kPack> xs = load_pack<kPack>(a.x + row * a.n + column);
      Pack<W, kPack> w;
      if (a.weight) w = load_pack<kPack>(a.weight + column);
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j) {
        const A g = convert<A>(gs.v[j]);
        h[p][j] = (convert<A>(xs.v[j]) - mean) * rstd;
        u[p][j] = a.weight ? g * convert<A>(w.v[j]) : g;
        to_w[p][j] += g * h[p][j];
        if (!kRms) {
          to_b[p][j] += g;
          sum_u += u[p][j];
        }
        sum_uh += u[p][j] * h[p][j];
      }
    }
    if (a.dx == nullptr) continue;
    const A mean_u = kRms ? A(0) : warp_sum(sum_u) / A(a.n);
    const A mean_uh = warp_sum(sum_uh) / A(a.n);
    CRESSET_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      const int column = (p * 32 + lane_id()) * kPack;
      if (column >= a.n) continue;
      Pack<T, kPack> out;
      if (a.sum) out = load_pack<kPack>(a.sum + row * a.n + column);
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j) {
        const A v = rstd * (u[p][j] - mean_u - h[p][j] * mean_uh);
        out.v[j] = a.sum ? added_to<T>(v, out.v[j]) : convert<T>(v);
      }
      store_pack<kPack>(a.dx + row * a.n + column, out);
    }
  }
  if (a.partial_w == nullptr && a.partial_b == nullptr) return;
  CRESSET_DYNAMIC_SHARED(A, shared); // [kWarps][n], once for each of the two
  for (int part = 0; part < (kRms ? 1 : 2); ++part) {
    A* partial = part == 0 ? a.partial_w : a.partial_b;
    if (partial == nullptr) continue;
    CRESSET_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      const int column = (p * 32 + lane_id()) * kPack;
      if (column >= a.n) continue;
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j)
        shared[warp_id() * a.n + column + j] = part == 0 ? to_w[p][j] : to_b[p][j];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
      A sum = 0;
      CRESSET_UNROLL
      for (int w = 0; w < kWarps; ++w) sum += shared[w * a.n + i];
      partial[static_cast<long>(blockIdx.x) * a.n + i] = sum;
    }
    __syncthreads();
  }
}

// The gradient of the input for rows that a block holds in registers.
template <class T, class W, int kPack, int kPacks, bool kRms>
CRESSET_DEVICE_FN void norm_backward_held(const NormBackward<T, W>& a) {
  using A = opmath_t<T>;
  CRESSET_SHARED A scratch[32];
  const long row = blockIdx.x;
  const A mean = kRms ? A(0) : a.mean[row], rstd = a.rstd[row];
  A h[kPacks][kPack], u[kPacks][kPack];
  A sum_u = 0, sum_uh = 0;
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * blockDim.x + threadIdx.x) * kPack;
    if (column >= a.n) continue;
    const Pack<T, kPack> gs = load_pack<kPack>(a.g + row * a.n + column);
    const Pack<T, kPack> xs = load_pack<kPack>(a.x + row * a.n + column);
    Pack<W, kPack> w;
    if (a.weight) w = load_pack<kPack>(a.weight + column);
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) {
      h[p][j] = (convert<A>(xs.v[j]) - mean) * rstd;
      u[p][j] = convert<A>(gs.v[j]);
      if (a.weight) u[p][j] *= convert<A>(w.v[j]);
      sum_u += u[p][j];
      sum_uh += u[p][j] * h[p][j];
    }
  }
  const A mean_u = kRms ? A(0) : block_sum(sum_u, scratch) / A(a.n);
  const A mean_uh = block_sum(sum_uh, scratch) / A(a.n);
  CRESSET_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int column = (p * blockDim.x + threadIdx.x) * kPack;
    if (column >= a.n) continue;
    Pack<T, kPack> out;
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j)
      out.v[j] = convert<T>(rstd * (u[p][j] - mean_u - h[p][j] * mean_uh));
    store_pack<kPack>(a.dx + row * a.n + column, out);
  }
}

template <class T, class W, bool kRms>
CRESSET_DEVICE_FN void norm_backward_block(const NormBackward<T, W>& a) {
  using A = opmath_t<T>;
  CRESSET_SHARED A scratch[32];
  const long row = blockIdx.x;
  const T *g = a.g + row * a.n, *x = a.x + row * a.n;
  const A mean = kRms ? A(0) : a.mean[row], rstd = a.rstd[row];
  A sum_u = 0, sum_uh = 0;
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
    const A u = a.weight ? convert<A>(g[i]) * convert<A>(a.weight[i]) : convert<A>(g[i]);
    sum_u += u;
    sum_uh += u * ((convert<A>(x[i]) - mean) * rstd);
  }
  const A mean_u = kRms ? A(0) : block_sum(sum_u, scratch) / A(a.n);
  const A mean_uh = block_sum(sum_uh, scratch) / A(a.n);
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
    const A u = a.weight ? convert<A>(g[i]) * convert<A>(a.weight[i]) : convert<A>(g[i]);
    const A h = (convert<A>(x[i]) - mean) * rstd;
    a.dx[row * a.n + i] = convert<T>(rstd * (u - mean_u - h * mean_uh));
  }
}

// Partial sums of the parameters' gradients for long rows: a block takes 32 columns and, by
// blockIdx.y, every gridDim.y-th group of 8 rows.
template <class T, class W, bool kRms>
CRESSET_DEVICE_FN void norm_parameters(const NormBackward<T, W>& a) {
  using A = opmath_t<T>;
  CRESSET_SHARED A sums[2][8][32];
  const int column = blockIdx.x * 32 + lane_id();
  A to_w = 0, to_b = 0;
  if (column < a.n) {
    for (long row = static_cast<long>(blockIdx.y) * 8 + warp_id(); row < a.rows;
         row += static_cast<long>(gridDim.y) * 8) {
      const A g = convert<A>(a.g[row * a.n + column]);
      const A mean = kRms ? A(0) : a.mean[row];
      to_w += g * ((convert<A>(a.x[row * a.n + column]) - mean) * a.rstd[row]);
      to_b += g;
    }
  }
  sums[0][warp_id()][lane_id()] = to_w;
  sums[1][warp_id()][lane_id()] = to_b;
  __syncthreads();
  if (warp_id() > 1 || column >= a.n) return;
  A* partial = warp_id() == 0 ? a.partial_w : a.partial_b;
  if (partial == nullptr) return;
  A sum = 0;
  CRESSET_UNROLL
  for (int w = 0; w < 8; ++w) sum += sums[warp_id()][w][lane_id()];
  partial[static_cast<long>(blockIdx.y) * a.n + column] = sum;
}

// The partial rows of the parameters, added up: a block takes 32 columns of one parameter (the
// first or, with blockIdx.y, the second), its warps every kReduceWarps-th row.
constexpr int kReduceWarps = 16;
template <class A, class W> struct NormPartial {
  const A* rows;
  W* out;
};
template <class A, class W>
CRESSET_DEVICE_FN void norm_reduce(NormPartial<A, W> part, long rows, int n) {
  constexpr int kAhead = 8; // loads in flight
  CRESSET_SHARED A sums[kReduceWarps][32];
  const int column = blockIdx.x * 32 + lane_id();
  A sum = 0;
  if (column < n) {
    const A* p = part.rows + column;
    long row = warp_id();
    for (; row + (kAhead - 1) * kReduceWarps < rows; row += kAhead * kReduceWarps) {
      A x[kAhead];
      CRESSET_UNROLL
      for (int u = 0; u < kAhead; ++u) x[u] = p[(row + u * kReduceWarps) * n];
      CRESSET_UNROLL
      for (int u = 0; u < kAhead; ++u) sum += x[u];
    }
    for (; row < rows; row += kReduceWarps) sum += p[row * n];
  }
  sums[warp_id()][lane_id()] = sum;
  __syncthreads();
  if (warp_id() != 0 || column >= n) return;
  sum = 0;
  CRESSET_UNROLL
  for (int w = 0; w < kReduceWarps; ++w) sum += sums[w][lane_id()];
  part.out[column] = convert<W>(sum);
}

} // namespace at::device

// Names: layer_norm_<form>_<input>_<parameters>. A lane of the warp forms holds 2, 4 or 8 packs.
#define CRESSET_NORM_WARP(op, rms, form, pack, packs, T, W)                                        \
  CRESSET_KERNEL(128)                                                                              \
  op##_##form##_##T##_##W(const at::device::NormForward<cresset_##T, cresset_##W> a) {             \
    using A = at::device::opmath_t<cresset_##T>;                                                   \
    at::device::norm_held<cresset_##T, cresset_##W, pack, packs, rms>(a,                           \
                                                                      at::device::WarpTeam<A>());  \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  op##_backward_##form##_##T##_##W(const at::device::NormBackward<cresset_##T, cresset_##W> a) {   \
    at::device::norm_backward_warp<cresset_##T, cresset_##W, pack, packs, rms>(a);                 \
  }
#define CRESSET_NORM_OP(op, rms, pack, T, W)                                                       \
  CRESSET_NORM_WARP(op, rms, p2, pack, 2, T, W)                                                    \
  CRESSET_NORM_WARP(op, rms, p4, pack, 4, T, W)                                                    \
  CRESSET_NORM_WARP(op, rms, p6, pack, 6, T, W)                                                    \
  CRESSET_NORM_WARP(op, rms, p8, pack, 8, T, W)                                                    \
  CRESSET_KERNEL(512)                                                                              \
  op##_held_##T##_##W(const at::device::NormForward<cresset_##T, cresset_##W> a) {                 \
    using A = at::device::opmath_t<cresset_##T>;                                                   \
    CRESSET_SHARED A scratch[32];                                                                  \
    at::device::norm_held<cresset_##T, cresset_##W, pack, 4, rms>(                                 \
        a, at::device::BlockTeam<A>{scratch});                                                     \
  }                                                                                                \
  CRESSET_KERNEL(512)                                                                              \
  op##_backward_held_##T##_##W(const at::device::NormBackward<cresset_##T, cresset_##W> a) {       \
    at::device::norm_backward_held<cresset_##T, cresset_##W, pack, 4, rms>(a);                     \
  }                                                                                                \
  CRESSET_KERNEL(512)                                                                              \
  op##_block_##T##_##W(const at::device::NormForward<cresset_##T, cresset_##W> a) {                \
    at::device::norm_block<cresset_##T, cresset_##W, rms>(a);                                      \
  }                                                                                                \
  CRESSET_KERNEL(512)                                                                              \
  op##_backward_block_##T##_##W(const at::device::NormBackward<cresset_##T, cresset_##W> a) {      \
    at::device::norm_backward_block<cresset_##T, cresset_##W, rms>(a);                             \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  op##_parameters_##T##_##W(const at::device::NormBackward<cresset_##T, cresset_##W> a) {          \
    at::device::norm_parameters<cresset_##T, cresset_##W, rms>(a);                                 \
  }
#define CRESSET_NORM(pack, T, W)                                                                   \
  CRESSET_NORM_OP(layer_norm, false, pack, T, W)                                                   \
  CRESSET_NORM_OP(rms_norm, true, pack, T, W)
#define CRESSET_NORM_REDUCE(A, W)                                                                  \
  CRESSET_KERNEL(512)                                                                              \
  norm_reduce_##A##_##W(const cresset_##A* first, const cresset_##A* second,                       \
                        cresset_##W* first_out, cresset_##W* second_out, long rows, int n) {       \
    using Part = at::device::NormPartial<cresset_##A, cresset_##W>;                                \
    at::device::norm_reduce(blockIdx.y == 0 ? Part{first, first_out} : Part{second, second_out},   \
                            rows, n);                                                              \
  }

CRESSET_NORM(4, f32, f32)
CRESSET_NORM(2, f64, f64)
CRESSET_NORM(4, f16, f16)
CRESSET_NORM(4, bf16, bf16)
CRESSET_NORM(4, f16, f32)
CRESSET_NORM(4, bf16, f32)
CRESSET_NORM_REDUCE(f32, f32)
CRESSET_NORM_REDUCE(f64, f64)
CRESSET_NORM_REDUCE(f32, f16)
CRESSET_NORM_REDUCE(f32, bf16)
