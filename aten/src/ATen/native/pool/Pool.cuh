// Maximum and mean over windows, and their gradients. One thread computes one element of the
// result. A gradient is gathered: an element of the input asks the windows it lies in, in their
// order, so that no two threads write one place and results repeat to the last bit.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/pool/Pool.args.h>

namespace at::device {

// n / divisor, cheap for the narrow index type.
CRESSET_DEVICE_FN int pool_divided(int n, int64_t, const Divider& fast) {
  return static_cast<int>(fast.quotient(static_cast<unsigned>(n)));
}
CRESSET_DEVICE_FN long pool_divided(long n, int64_t divisor, const Divider&) { return n / divisor; }

// Positions lo, lo + step, ... below hi; `full` counts them with the padding.
template <class I> struct PoolWindow { I lo, hi, full; };

template <class I> CRESSET_DEVICE_FN PoolWindow<I> pool_window(const PoolDimension& d, I o) {
  const I in = static_cast<I>(d.in), out = static_cast<I>(d.out);
  if (d.kernel == 0) {
    // Products of two sizes need the wide type.
    const I lo = static_cast<I>(static_cast<long>(o) * in / out);
    const I hi = static_cast<I>((static_cast<long>(o + 1) * in + out - 1) / out);
    return {lo, hi, hi - lo};
  }
  const I step = static_cast<I>(d.dilation), padding = static_cast<I>(d.padding);
  const I start = o * static_cast<I>(d.stride) - padding;
  const I end = start + (static_cast<I>(d.kernel) - 1) * step + 1;
  const I inside = start >= 0 ? start : step == 1 ? 0 : start + (-start + step - 1) / step * step;
  const I room = (end < in + padding ? end : in + padding) - start;
  if (inside >= in) return {in - 1, in - 1, room}; // a spread window may lie in the padding alone
  return {inside, end < in ? end : in, room};
}

// The windows from first to last may hold position x of the input.
template <class I> struct PoolOwners { I first, last; };
template <class I> CRESSET_DEVICE_FN PoolOwners<I> pool_owners(const PoolDimension& d, I x) {
  const I in = static_cast<I>(d.in), out = static_cast<I>(d.out);
  if (d.kernel == 0) {
    const I first = static_cast<I>(static_cast<long>(x) * out / in);
    const I last = static_cast<I>((static_cast<long>(x + 1) * out + in - 1) / in) - 1;
    return {first, last};
  }
  const I stride = static_cast<I>(d.stride), extent = static_cast<I>((d.kernel - 1) * d.dilation);
  const I place = x + static_cast<I>(d.padding);
  const I first =
      place < extent ? 0 : pool_divided(place - extent + stride - 1, d.stride, d.by_stride);
  const I last = pool_divided(place, d.stride, d.by_stride);
  return {first, last < out ? last : out - 1};
}
// The element a thread computes: a position of a plane, and where the plane begins.
template <class I> struct PoolElement {
  I position[3], place; // place: of the position in the plane
  long sample, channel;

  CRESSET_DEVICE_FN PoolElement(const PoolNumbers& n, I i, bool large) {
    const PoolDimension &y = n.axis[1], &x = n.axis[2];
    const I width = static_cast<I>(large ? x.in : x.out),
            height = static_cast<I>(large ? y.in : y.out),
            depth = static_cast<I>(large ? n.axis[0].in : n.axis[0].out),
            plane = depth * height * width, channels = static_cast<I>(n.channels);
    const Divider& by_plane = large ? n.by_large : n.by_small;
    if (n.channels_last) {
      const I rest = pool_divided(i, n.channels, n.by_channels);
      channel = i - rest * channels;
      sample = pool_divided(rest, plane, by_plane);
      place = rest - static_cast<I>(sample) * plane;
    } else {
      const I rest = pool_divided(i, plane, by_plane);
      place = i - rest * plane;
      sample = pool_divided(rest, n.channels, n.by_channels);
      channel = rest - static_cast<I>(sample) * channels;
    }
    const I row = pool_divided(place, width, large ? x.by_in : x.by_out);
    position[2] = place - row * width;
    position[0] = pool_divided(row, height, large ? y.by_in : y.by_out);
    position[1] = row - position[0] * height;
  }
  CRESSET_DEVICE_FN long base(const PoolPlanes& p) const {
    return sample * p.sample + channel * p.channel;
  }
};

template <class I> CRESSET_DEVICE_FN bool pool_index(const PoolNumbers& n, bool large, I* index) {
  long total = n.samples * n.channels;
  for (int d = 0; d < 3; ++d) total *= large ? n.axis[d].in : n.axis[d].out;
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  *index = static_cast<I>(i);
  return i < total;
}

// f(place in the input's plane) for the elements of the window of one output.
template <class I, class F>
CRESSET_DEVICE_FN void each_in_window(const PoolNumbers& n, const PoolWindow<I>* w, const F& f) {
  const I height = static_cast<I>(n.axis[1].in), width = static_cast<I>(n.axis[2].in);
  for (I z = w[0].lo; z < w[0].hi; z += static_cast<I>(n.axis[0].dilation))
    for (I y = w[1].lo; y < w[1].hi; y += static_cast<I>(n.axis[1].dilation))
      for (I x = w[2].lo; x < w[2].hi; x += static_cast<I>(n.axis[2].dilation))
        f((z * height + y) * width + x);
}

// NaN is larger than everything, and the last one counts.
template <class T, class I>
CRESSET_DEVICE_FN void pool_max(const T* in, T* out, long* indices, const PoolNumbers& n) {
  I i;
  if (!pool_index(n, false, &i)) return;
  const PoolElement<I> here(n, i, false);
  PoolWindow<I> w[3];
  for (int d = 0; d < 3; ++d) w[d] = pool_window(n.axis[d], here.position[d]);
  using A = opmath_t<T>;
  const T* plane = in + here.base(n.large);
  A best = -c10::numeric_limits<A>::infinity();
  I where =
      (w[0].lo * static_cast<I>(n.axis[1].in) + w[1].lo) * static_cast<I>(n.axis[2].in) + w[2].lo;
  each_in_window(n, w, [&](I place) {
    const A v = convert<A>(plane[place * n.large.position]);
    if (v > best || v != v) {
      best = v;
      where = place;
    }
  });
  const long to = here.base(n.small) + here.place * n.small.position;
  out[to] = convert<T>(best);
  indices[to] = where;
}

// f(place in the output's plane) for the windows an input element may lie in.
template <class I, class F>
CRESSET_DEVICE_FN void each_owner(const PoolNumbers& n, const PoolElement<I>& here, const F& f) {
  PoolOwners<I> o[3];
  for (int d = 0; d < 3; ++d) o[d] = pool_owners(n.axis[d], here.position[d]);
  const I height = static_cast<I>(n.axis[1].out), width = static_cast<I>(n.axis[2].out);
  for (I z = o[0].first; z <= o[0].last; ++z)
    for (I y = o[1].first; y <= o[1].last; ++y)
      for (I x = o[2].first; x <= o[2].last; ++x) f((z * height + y) * width + x);
}

template <class T, class I> CRESSET_DEVICE_FN void
pool_max_backward(const T* grad, const long* indices, T* out, const PoolNumbers& n) {
  I i;
  if (!pool_index(n, true, &i)) return;
  const PoolElement<I> here(n, i, true);
  const long from = here.base(n.small);
  opmath_t<T> sum = 0;
  each_owner(n, here, [&](I place) {
    const long at = from + place * n.small.position;
    if (indices[at] == here.place) sum += convert<opmath_t<T>>(grad[at]);
  });
  out[here.base(n.large) + here.place * n.large.position] = convert<T>(sum);
}

// ---- several channels that lie side by side, by one thread: what the geometry costs is shared,
// and memory is read in packs. Numbers count such packs as channels.
template <int kPack> CRESSET_DEVICE_FN void load_places(const long* from, long (&places)[kPack]) {
  CRESSET_UNROLL
  for (int k = 0; k < kPack; k += 2) {
    const Pack<long, 2> two = load_pack<2>(from + k);
    places[k] = two.v[0];
    places[k + 1] = two.v[1];
  }
}

template <class T, int kPack>
CRESSET_DEVICE_FN void pool_max_packed(const T* in, T* out, long* indices, const PoolNumbers& n) {
  int i;
  if (!pool_index(n, false, &i)) return;
  const PoolElement<int> here(n, i, false);
  PoolWindow<int> w[3];
  for (int d = 0; d < 3; ++d) w[d] = pool_window(n.axis[d], here.position[d]);
  using A = opmath_t<T>;
  const T* plane = in + here.base(n.large);
  const int first =
      (w[0].lo * static_cast<int>(n.axis[1].in) + w[1].lo) * static_cast<int>(n.axis[2].in) +
      w[2].lo;
  A best[kPack];
  int where[kPack];
  CRESSET_UNROLL
  for (int k = 0; k < kPack; ++k) {
    best[k] = -c10::numeric_limits<A>::infinity();
    where[k] = first;
  }
  each_in_window(n, w, [&](int place) {
    const Pack<T, kPack> x = load_pack<kPack>(plane + place * n.large.position);
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k) {
      const A v = convert<A>(x.v[k]);
      if (v > best[k] || v != v) {
        best[k] = v;
        where[k] = place;
      }
    }
  });
  const long to = here.base(n.small) + here.place * n.small.position;
  Pack<T, kPack> y;
  CRESSET_UNROLL
  for (int k = 0; k < kPack; ++k) y.v[k] = convert<T>(best[k]);
  store_pack<kPack>(out + to, y);
  CRESSET_UNROLL
  for (int k = 0; k < kPack; k += 2)
    store_pack<2>(indices + to + k, Pack<long, 2>{{where[k], where[k + 1]}});
}

template <class T, int kPack> CRESSET_DEVICE_FN void
pool_max_backward_packed(const T* grad, const long* indices, T* out, const PoolNumbers& n) {
  int i;
  if (!pool_index(n, true, &i)) return;
  const PoolElement<int> here(n, i, true);
  const long from = here.base(n.small);
  opmath_t<T> sum[kPack];
  CRESSET_UNROLL
  for (int k = 0; k < kPack; ++k) sum[k] = 0;
  each_owner(n, here, [&](int place) {
    const long at = from + place * n.small.position;
    const Pack<T, kPack> g = load_pack<kPack>(grad + at);
    long places[kPack];
    load_places(indices + at, places);
    CRESSET_UNROLL
    for (int k = 0; k < kPack; ++k)
      if (places[k] == here.place) sum[k] += convert<opmath_t<T>>(g.v[k]);
  });
  Pack<T, kPack> dx;
  CRESSET_UNROLL
  for (int k = 0; k < kPack; ++k) dx.v[k] = convert<T>(sum[k]);
  store_pack<kPack>(out + here.base(n.large) + here.place * n.large.position, dx);
}

// What one dimension of a window adds to the number its sum is divided by.
template <class I> CRESSET_DEVICE_FN I pool_length(const PoolNumbers& n, const PoolWindow<I>& w) {
  return n.divisor ? 1 : n.with_padding ? w.full : w.hi - w.lo;
}
template <class A, class I> CRESSET_DEVICE_FN A pool_count(const PoolNumbers& n, I lengths) {
  return static_cast<A>(n.divisor ? n.divisor : static_cast<int64_t>(lengths));
}

template <class T, class I>
CRESSET_DEVICE_FN void pool_mean(const T* in, T* out, const PoolNumbers& n) {
  I i;
  if (!pool_index(n, false, &i)) return;
  const PoolElement<I> here(n, i, false);
  PoolWindow<I> w[3];
  I lengths = 1;
  bool empty = false;
  for (int d = 0; d < 3; ++d) {
    w[d] = pool_window(n.axis[d], here.position[d]);
    lengths *= pool_length(n, w[d]);
    empty |= w[d].lo >= w[d].hi;
  }
  using A = opmath_t<T>;
  const T* plane = in + here.base(n.large);
  A sum = 0;
  each_in_window(n, w, [&](I place) { sum += convert<A>(plane[place * n.large.position]); });
  out[here.base(n.small) + here.place * n.small.position] =
      empty ? convert<T>(A(0)) : convert<T>(sum / pool_count<A>(n, lengths));
}

template <class T, class I>
CRESSET_DEVICE_FN void pool_mean_backward(const T* grad, T* out, const PoolNumbers& n) {
  I i;
  if (!pool_index(n, true, &i)) return;
  const PoolElement<I> here(n, i, true);
  using A = opmath_t<T>;
  const T* from = grad + here.base(n.small);
  PoolOwners<I> o[3];
  for (int d = 0; d < 3; ++d) o[d] = pool_owners(n.axis[d], here.position[d]);
  const I height = static_cast<I>(n.axis[1].out), width = static_cast<I>(n.axis[2].out);
  A sum = 0;
  for (I z = o[0].first; z <= o[0].last; ++z) {
    const I deep = pool_length(n, pool_window(n.axis[0], z));
    for (I y = o[1].first; y <= o[1].last; ++y) {
      const I high = deep * pool_length(n, pool_window(n.axis[1], y));
      for (I x = o[2].first; x <= o[2].last; ++x) {
        const A count = pool_count<A>(n, high * pool_length(n, pool_window(n.axis[2], x)));
        const long place = (z * height + y) * width + x;
        if (count != A(0)) sum += convert<A>(from[place * n.small.position]) / count;
      }
    }
  }
  out[here.base(n.large) + here.place * n.large.position] = convert<T>(sum);
}

} // namespace at::device

// Two forms: 32-bit positions where both sides are small enough, since a division of 64 bits costs
// many instructions.
#define CRESSET_POOL_OF(T, I, suffix)                                                              \
  CRESSET_KERNEL(256)                                                                              \
  pool_max_##T##suffix(const cresset_##T* in, cresset_##T* out, long* indices,                     \
                       at::device::PoolNumbers n) {                                                \
    at::device::pool_max<cresset_##T, I>(in, out, indices, n);                                     \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  pool_max_backward_##T##suffix(const cresset_##T* grad, const long* indices, cresset_##T* out,    \
                                at::device::PoolNumbers n) {                                       \
    at::device::pool_max_backward<cresset_##T, I>(grad, indices, out, n);                          \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  pool_mean_##T##suffix(const cresset_##T* in, cresset_##T* out, at::device::PoolNumbers n) {      \
    at::device::pool_mean<cresset_##T, I>(in, out, n);                                             \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  pool_mean_backward_##T##suffix(const cresset_##T* grad, cresset_##T* out,                        \
                                 at::device::PoolNumbers n) {                                      \
    at::device::pool_mean_backward<cresset_##T, I>(grad, out, n);                                  \
  }
#define CRESSET_POOL(T, pack)                                                                      \
  CRESSET_POOL_OF(T, int, )                                                                        \
  CRESSET_POOL_OF(T, long, _wide)                                                                  \
  CRESSET_KERNEL(256)                                                                              \
  pool_max_##T##_packed(const cresset_##T* in, cresset_##T* out, long* indices,                    \
                        at::device::PoolNumbers n) {                                               \
    at::device::pool_max_packed<cresset_##T, pack>(in, out, indices, n);                           \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  pool_max_backward_##T##_packed(const cresset_##T* grad, const long* indices, cresset_##T* out,   \
                                 at::device::PoolNumbers n) {                                      \
    at::device::pool_max_backward_packed<cresset_##T, pack>(grad, indices, out, n);                \
  }
CRESSET_POOL(f32, 4)
CRESSET_POOL(f64, 2)
CRESSET_POOL(f16, 4)
CRESSET_POOL(bf16, 4)
