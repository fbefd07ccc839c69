// Batch norm: folds over the values of each channel (moments forward, two sums backward), a short
// kernel that turns the parts of a channel into its coefficients, and one pass that applies them.
// How a channel is cut depends on the shape alone and parts are joined in order, so results repeat
// to the last bit.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/native/norm/BatchNorm.args.h>

namespace at::device {

CRESSET_DEVICE_FN long divided(long n, long divisor, const Divider& fast, bool small) {
  return small ? fast.quotient(static_cast<unsigned>(n)) : n / divisor;
}

// A gradient behind the positive part of something: zero where that is not above zero.
template <class T, int kPack>
CRESSET_DEVICE_FN Pack<T, kPack> load_gradient(const T* grad, const T* rectified, long place) {
  Pack<T, kPack> g = load_pack<kPack>(grad + place);
  if (rectified != nullptr) {
    const Pack<T, kPack> r = load_pack<kPack>(rectified + place);
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k)
      if (convert<opmath_t<T>>(r.v[k]) <= opmath_t<T>(0)) g.v[k] = convert<T>(opmath_t<T>(0));
  }
  return g;
}

// ---- what is folded -----------------------------------------------------------------------------
// Count, mean and the sum of squared distances from it: exact where a plain sum of squares loses
// everything to a large mean.
template <class A> struct Moments {
  A count, mean, spread;

  CRESSET_DEVICE_FN static Moments none() { return {A(0), A(0), A(0)}; }
  CRESSET_DEVICE_FN Moments joined(const Moments& o) const {
    const A n = count + o.count;
    if (n == A(0)) return *this;
    const A gap = o.mean - mean, share = o.count / n;
    return {n, mean + gap * share, spread + o.spread + gap * gap * count * share};
  }
  CRESSET_DEVICE_FN Moments from_lane(int step) const {
    return {__shfl_xor_sync(kAllLanes, count, step), __shfl_xor_sync(kAllLanes, mean, step),
            __shfl_xor_sync(kAllLanes, spread, step)};
  }
};

// The moments of the values themselves.
template <class T> struct MomentFold {
  using A = opmath_t<T>;
  using State = Moments<A>;
  const T* x;

  CRESSET_DEVICE_FN explicit MomentFold(const MomentArgs<T>& a) : x(a.x) {}

  // kPack values of one channel that lie together.
  template <int kPack> CRESSET_DEVICE_FN void add(State& s, long place, long) const {
    const Pack<T, kPack> pack = load_pack<kPack>(x + place);
    A sum = 0;
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) sum += convert<A>(pack.v[k]);
    State here{A(kPack), sum / A(kPack), A(0)};
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      const A d = convert<A>(pack.v[k]) - here.mean;
      here.spread += d * d;
    }
    s = s.joined(here);
  }
  // One value each of kPack channels; all states have the same count.
  template <int kPack> using Row = Pack<T, kPack>;
  template <int kPack> CRESSET_DEVICE_FN Row<kPack> load_row(long place) const {
    return load_pack<kPack>(x + place);
  }
  template <int kPack>
  CRESSET_DEVICE_FN void add_row(State (&s)[kPack], const Row<kPack>& pack, const A*) const {
    const A count = s[0].count + A(1), share = A(1) / count;
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      const A v = convert<A>(pack.v[k]), d = v - s[k].mean;
      s[k].count = count;
      s[k].mean += d * share;
      s[k].spread += d * (v - s[k].mean);
    }
  }
  CRESSET_DEVICE_FN A centre(long) const { return A(0); }
};

// The gradient's sum, and its product with the values' distance from their mean.
template <class A> struct GradientSums {
  A total, dot, unused;

  CRESSET_DEVICE_FN static GradientSums none() { return {A(0), A(0), A(0)}; }
  CRESSET_DEVICE_FN GradientSums joined(const GradientSums& o) const {
    return {total + o.total, dot + o.dot, A(0)};
  }
  CRESSET_DEVICE_FN GradientSums from_lane(int step) const {
    return {__shfl_xor_sync(kAllLanes, total, step), __shfl_xor_sync(kAllLanes, dot, step), A(0)};
  }
};

template <class T> struct GradientFold {
  using A = opmath_t<T>;
  using State = GradientSums<A>;
  const T *x, *grad, *rectified;
  const A* mean;

  CRESSET_DEVICE_FN explicit GradientFold(const GradientArgs<T, A>& a)
      : x(a.x), grad(a.grad), rectified(a.rectified), mean(a.mean) {}

  template <int kPack> CRESSET_DEVICE_FN void add(State& s, long place, long channel) const {
    const Pack<T, kPack> values = load_pack<kPack>(x + place),
                         g = load_gradient<T, kPack>(grad, rectified, place);
    const A centre = mean[channel];
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      const A gk = convert<A>(g.v[k]);
      s.total += gk;
      s.dot += gk * (convert<A>(values.v[k]) - centre);
    }
  }
  template <int kPack> struct Row { Pack<T, kPack> values, grad; };
  template <int kPack> CRESSET_DEVICE_FN Row<kPack> load_row(long place) const {
    return {load_pack<kPack>(x + place), load_gradient<T, kPack>(grad, rectified, place)};
  }
  template <int kPack>
  CRESSET_DEVICE_FN void add_row(State (&s)[kPack], const Row<kPack>& row, const A* centres) const {
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      const A gk = convert<A>(row.grad.v[k]);
      s[k].total += gk;
      s[k].dot += gk * (convert<A>(row.values.v[k]) - centres[k]);
    }
  }
  CRESSET_DEVICE_FN A centre(long channel) const { return mean[channel]; }
};

// ---- the folds ----------------------------------------------------------------------------------
constexpr int kFoldThreads = 256, kFoldWarps = kFoldThreads / 32;

// One block for each part of each channel: blockIdx.x the channel, blockIdx.y the part.
template <int kPack, class F>
CRESSET_DEVICE_FN void fold_planes(const F& f, typename F::State* out, const ChannelNumbers& n) {
  using State = typename F::State;
  CRESSET_SHARED State scratch[kFoldWarps];
  const long channel = blockIdx.x, first = blockIdx.y * n.part, all = n.samples * n.plane;
  const long last = first + n.part < all ? first + n.part : all;
  State s = State::none();
  for (long i = first + static_cast<long>(threadIdx.x) * kPack; i < last;
       i += kFoldThreads * kPack) {
    const long sample = divided(i, n.plane, n.by_plane, n.small);
    f.template add<kPack>(s, (sample * n.channels + channel) * n.plane + i - sample * n.plane,
                          channel);
  }
  CRESSET_UNROLL
  for (int step = 16; step > 0; step >>= 1) s = s.joined(s.from_lane(step));
  if (lane_id() == 0) scratch[warp_id()] = s;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kFoldWarps; ++w) s = s.joined(scratch[w]);
  out[blockIdx.y * n.channels + channel] = s;
}

// Rows of all channels: a warp takes a row of 32 * kPack channels at a time, or several rows where
// these have fewer channels. Some rows are loaded before the first is added.
template <int kPack, class F>
CRESSET_DEVICE_FN void fold_rows(const F& f, typename F::State* out, const ChannelNumbers& n) {
  using State = typename F::State;
  CRESSET_SHARED State scratch[kFoldWarps - 1][32][kPack];
  constexpr int kLoaded = 4;
  const int lanes = static_cast<int>(n.row_lanes), side = 32 / lanes;
  const long channel = (static_cast<long>(blockIdx.x) * 32 + (lane_id() & (lanes - 1))) * kPack;
  const long first = blockIdx.y * n.part, all = n.samples * n.plane;
  const long last = first + n.part < all ? first + n.part : all;
  State s[kPack];
  typename F::A centres[kPack];
  const bool inside = channel < n.channels;
  CRESSET_UNROLL
  for (int k = 0; k < kPack; ++k) {
    s[k] = State::none();
    centres[k] = inside ? f.centre(channel + k) : typename F::A(0);
  }
  if (inside) {
    const long step = kFoldWarps * side;
    long row = first + warp_id() * side + lane_id() / lanes;
    for (; row + (kLoaded - 1) * step < last; row += kLoaded * step) {
      typename F::template Row<kPack> rows[kLoaded];
      CRESSET_UNROLL
      for (int k = 0; k < kLoaded; ++k)
        rows[k] = f.template load_row<kPack>((row + k * step) * n.channels + channel);
      CRESSET_UNROLL
      for (int k = 0; k < kLoaded; ++k) f.template add_row<kPack>(s, rows[k], centres);
    }
    for (; row < last; row += step)
      f.template add_row<kPack>(s, f.template load_row<kPack>(row * n.channels + channel), centres);
  }
  for (int step = lanes; step < 32; step *= 2) {
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) s[k] = s[k].joined(s[k].from_lane(step));
  }
  if (warp_id() > 0) {
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) scratch[warp_id() - 1][lane_id()][k] = s[k];
  }
  __syncthreads();
  if (warp_id() > 0 || !inside || lane_id() >= lanes) return;
  for (int w = 0; w < kFoldWarps - 1; ++w) {
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) s[k] = s[k].joined(scratch[w][lane_id()][k]);
  }
  CRESSET_UNROLL
  for (int k = 0; k < kPack; ++k) out[blockIdx.y * n.channels + channel + k] = s[k];
}

// The parts of a channel, in the first of the threads that share it. A block takes 32 channels.
template <class State>
CRESSET_DEVICE_FN State joined_parts(const State* parts, long channel, const ChannelNumbers& n) {
  CRESSET_SHARED State scratch[kJoiningThreads / 2][32];
  const int group = warp_id(), lane = lane_id();
  State s = State::none();
  if (channel < n.channels)
    for (long p = group; p < n.parts; p += kJoiningThreads)
      s = s.joined(parts[p * n.channels + channel]);
  for (int half = kJoiningThreads / 2; half > 0; half /= 2) {
    if (group >= half && group < 2 * half) scratch[group - half][lane] = s;
    __syncthreads();
    if (group < half) s = s.joined(scratch[group][lane]);
    __syncthreads();
  }
  return s;
}

// ---- coefficients -------------------------------------------------------------------------------
template <class A> CRESSET_DEVICE_FN void forward_coefficients(const Moments<A>* parts,
                                                               const ForwardCoefficients<A>& to,
                                                               const ChannelNumbers& n) {
  const long c = static_cast<long>(blockIdx.x) * 32 + lane_id();
  const Moments<A> m = joined_parts(parts, c, n);
  if (warp_id() > 0 || c >= n.channels) return;
  const A variance = m.spread / m.count;
  const A invstd = A(1) / sqrt(variance + static_cast<A>(to.eps));
  const A momentum = static_cast<A>(to.momentum);
  if (to.running_mean)
    to.running_mean[c] = (A(1) - momentum) * to.running_mean[c] + momentum * m.mean;
  if (to.running_var)
    to.running_var[c] =
        (A(1) - momentum) * to.running_var[c] + momentum * (m.spread / (m.count - A(1)));
  to.save_mean[c] = m.mean;
  to.save_invstd[c] = invstd;
  const A scale = to.weight ? invstd * to.weight[c] : invstd;
  to.scale[c] = scale;
  to.shift[c] = (to.bias ? to.bias[c] : A(0)) - m.mean * scale;
}

// The input's gradient is scale * grad + slope * (x - mean) + offset.
template <class A> CRESSET_DEVICE_FN void backward_coefficients(const GradientSums<A>* parts,
                                                                const BackwardCoefficients<A>& to,
                                                                const ChannelNumbers& n) {
  const long c = static_cast<long>(blockIdx.x) * 32 + lane_id();
  const GradientSums<A> s = joined_parts(parts, c, n);
  if (warp_id() > 0 || c >= n.channels) return;
  const A invstd = to.invstd[c], scale = to.weight ? invstd * to.weight[c] : invstd;
  const A count = static_cast<A>(n.samples * n.plane);
  to.grad_weight[c] = s.dot * invstd;
  to.grad_bias[c] = s.total;
  to.scale[c] = scale;
  to.slope[c] = to.training ? -scale * invstd * invstd * (s.dot / count) : A(0);
  to.offset[c] = to.training ? -scale * (s.total / count) : A(0);
}

// ---- application --------------------------------------------------------------------------------
// Writes the packs of this thread: one, or where channels are last, one of each of kAppliedRows
// rows, all of the same channels.
template <class F> CRESSET_DEVICE_FN void apply_packs(const ChannelNumbers& n, const F& f) {
  const long all = n.samples * n.channels * n.plane;
  const long i = (static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x) * F::kPack;
  if (!n.channels_last) {
    if (i >= all) return;
    const long outer = divided(i, n.plane, n.by_plane, n.small);
    const long c = outer - divided(outer, n.channels, n.by_channels, n.small) * n.channels;
    f.write(i, f.read(i), f.coefficients(c, 0));
    return;
  }
  const long step = (n.samples * n.plane + kAppliedRows - 1) / kAppliedRows * n.channels;
  if (i >= step) return;
  const auto by =
      f.coefficients(i - divided(i, n.channels, n.by_channels, n.small) * n.channels, 1);
  typename F::Values values[kAppliedRows];
  CRESSET_UNROLL
  for (int r = 0; r < kAppliedRows; ++r)
    if (i + r * step < all) values[r] = f.read(i + r * step);
  CRESSET_UNROLL
  for (int r = 0; r < kAppliedRows; ++r)
    if (i + r * step < all) f.write(i + r * step, values[r], by);
}

template <class T, int kValues> struct ForwardApplication {
  static constexpr int kPack = kValues;
  using A = opmath_t<T>;
  struct Values {
    Pack<T, kPack> x, added;
  };
  struct Coefficients {
    A scale[kPack], shift[kPack];
  };
  const T *x, *added; // added: to the norm; null: nothing
  T* y;
  const A *scale, *shift;
  bool rectifies;

  // Of kPack channels from c on, or (step 0) of c alone.
  CRESSET_DEVICE_FN Coefficients coefficients(long c, int step) const {
    Coefficients by;
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      by.scale[k] = scale[c + k * step];
      by.shift[k] = shift[c + k * step];
    }
    return by;
  }
  CRESSET_DEVICE_FN Values read(long i) const {
    Values v;
    v.x = load_pack<kPack>(x + i);
    if (added != nullptr) v.added = load_pack<kPack>(added + i);
    return v;
  }
  // Rounds after each of the operators, as they do one by one.
  CRESSET_DEVICE_FN void write(long i, Values v, const Coefficients& by) const {
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      T& r = v.x.v[k];
      r = convert<T>(convert<A>(r) * by.scale[k] + by.shift[k]);
      if (added != nullptr) r = convert<T>(convert<A>(r) + convert<A>(v.added.v[k]));
      if (rectifies && convert<A>(r) < A(0)) r = convert<T>(A(0));
    }
    store_pack<kPack>(y + i, v.x);
  }
};

template <class T, int kValues> struct BackwardApplication {
  static constexpr int kPack = kValues;
  using A = opmath_t<T>;
  struct Values {
    Pack<T, kPack> x, grad;
  };
  struct Coefficients {
    A mean[kPack], scale[kPack], slope[kPack], offset[kPack];
  };
  const T *x, *grad, *rectified;
  T* out;
  Slopes<A> by_channel;

  CRESSET_DEVICE_FN Coefficients coefficients(long c, int step) const {
    Coefficients by;
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      by.mean[k] = by_channel.mean[c + k * step];
      by.scale[k] = by_channel.scale[c + k * step];
      by.slope[k] = by_channel.slope[c + k * step];
      by.offset[k] = by_channel.offset[c + k * step];
    }
    return by;
  }
  CRESSET_DEVICE_FN Values read(long i) const {
    return {load_pack<kPack>(x + i), load_gradient<T, kPack>(grad, rectified, i)};
  }
  CRESSET_DEVICE_FN void write(long i, Values v, const Coefficients& by) const {
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      const A centred = convert<A>(v.x.v[k]) - by.mean[k];
      v.grad.v[k] = convert<T>(convert<A>(v.grad.v[k]) * by.scale[k] +
                               (centred * by.slope[k] + by.offset[k]));
    }
    store_pack<kPack>(out + i, v.grad);
  }
};

} // namespace at::device

#define CRESSET_BATCH_NORM_PACK(T, pack, suffix)                                                   \
  CRESSET_KERNEL(256)                                                                              \
  moments_planes_##T##suffix(at::device::MomentArgs<cresset_##T> f,                                \
                             at::device::Moments<at::device::opmath_t<cresset_##T>>* out,          \
                             at::device::ChannelNumbers n) {                                       \
    at::device::fold_planes<pack>(at::device::MomentFold<cresset_##T>(f), out, n);                 \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  moments_rows_##T##suffix(at::device::MomentArgs<cresset_##T> f,                                  \
                           at::device::Moments<at::device::opmath_t<cresset_##T>>* out,            \
                           at::device::ChannelNumbers n) {                                         \
    at::device::fold_rows<pack>(at::device::MomentFold<cresset_##T>(f), out, n);                   \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  sums_planes_##T##suffix(                                                                         \
      at::device::GradientArgs<cresset_##T, at::device::opmath_t<cresset_##T>> f,                  \
      at::device::GradientSums<at::device::opmath_t<cresset_##T>>* out,                            \
      at::device::ChannelNumbers n) {                                                              \
    at::device::fold_planes<pack>(at::device::GradientFold<cresset_##T>(f), out, n);               \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  sums_rows_##T##suffix(                                                                           \
      at::device::GradientArgs<cresset_##T, at::device::opmath_t<cresset_##T>> f,                  \
      at::device::GradientSums<at::device::opmath_t<cresset_##T>>* out,                            \
      at::device::ChannelNumbers n) {                                                              \
    at::device::fold_rows<pack>(at::device::GradientFold<cresset_##T>(f), out, n);                 \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  apply_forward_##T##suffix(const cresset_##T* x, const cresset_##T* added, cresset_##T* y,        \
                            const at::device::opmath_t<cresset_##T>* scale,                        \
                            const at::device::opmath_t<cresset_##T>* shift, bool rectifies,        \
                            at::device::ChannelNumbers n) {                                        \
    at::device::apply_packs(n, at::device::ForwardApplication<cresset_##T, pack>{                  \
                                   x, added, y, scale, shift, rectifies});                         \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  apply_backward_##T##suffix(const cresset_##T* x, const cresset_##T* grad,                        \
                             const cresset_##T* rectified, cresset_##T* out,                       \
                             at::device::Slopes<at::device::opmath_t<cresset_##T>> by,             \
                             at::device::ChannelNumbers n) {                                       \
    at::device::apply_packs(                                                                       \
        n, at::device::BackwardApplication<cresset_##T, pack>{x, grad, rectified, out, by});       \
  }
#define CRESSET_COEFFICIENTS(A)                                                                    \
  CRESSET_KERNEL(1024)                                                                             \
  forward_coefficients_##A(const at::device::Moments<cresset_##A>* parts,                          \
                           at::device::ForwardCoefficients<cresset_##A> to,                        \
                           at::device::ChannelNumbers n) {                                         \
    at::device::forward_coefficients(parts, to, n);                                                \
  }                                                                                                \
  CRESSET_KERNEL(1024)                                                                             \
  backward_coefficients_##A(const at::device::GradientSums<cresset_##A>* parts,                    \
                            at::device::BackwardCoefficients<cresset_##A> to,                      \
                            at::device::ChannelNumbers n) {                                        \
    at::device::backward_coefficients(parts, to, n);                                               \
  }
#define CRESSET_BATCH_NORM(T, pack)                                                                \
  CRESSET_BATCH_NORM_PACK(T, 1, ) CRESSET_BATCH_NORM_PACK(T, pack, _packed)
CRESSET_BATCH_NORM(f32, 4)
CRESSET_BATCH_NORM(f64, 2)
CRESSET_BATCH_NORM(f16, 8)
CRESSET_BATCH_NORM(bf16, 8)
CRESSET_COEFFICIENTS(f32)
CRESSET_COEFFICIENTS(f64)
