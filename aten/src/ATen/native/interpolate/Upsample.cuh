// Resizing by sums over taps along each axis (Taps.h), and the gradient, which is the same with the
// transposed taps. One kernel does all axes at a time, an element of the result for each thread;
// one does a single axis, which costs less where every axis has many taps; and one copies, 16 bytes
// for each thread, where every element of the result is one of the source.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/interpolate/Upsample.args.h>

namespace at::device {

CRESSET_DEVICE_FN int resize_divided(int n, int64_t, const Divider& fast) {
  return static_cast<int>(fast.quotient(static_cast<unsigned>(n)));
}
CRESSET_DEVICE_FN long resize_divided(long n, int64_t divisor, const Divider&) {
  return n / divisor;
}

template <class T, class A, class I>
CRESSET_DEVICE_FN void resize(const T* from, T* to, const ResizeArgs<A>& a) {
  const ResizedAxis<A>&z = a.axis[0], &y = a.axis[1], &x = a.axis[2];
  const long plane = z.to * y.to * x.to;
  const long index = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.samples * a.channels * plane) return;
  const I i = static_cast<I>(index);
  I place, sample, channel;
  if (a.channels_last) {
    const I rest = resize_divided(i, a.channels, a.by_channels);
    channel = i - rest * static_cast<I>(a.channels);
    sample = resize_divided(rest, plane, a.by_plane);
    place = rest - sample * static_cast<I>(plane);
  } else {
    const I rest = resize_divided(i, plane, a.by_plane);
    place = i - rest * static_cast<I>(plane);
    sample = resize_divided(rest, a.channels, a.by_channels);
    channel = rest - sample * static_cast<I>(a.channels);
  }
  const I row = resize_divided(place, x.to, x.by_to);
  const I ox = place - row * static_cast<I>(x.to);
  const I oz = resize_divided(row, y.to, y.by_to);
  const I oy = row - oz * static_cast<I>(y.to);
  const long source = z.from * y.from * x.from;
  const long step = a.channels_last ? a.channels : 1;
  const T* in = from + (a.channels_last ? sample * source * a.channels + channel
                                        : (sample * a.channels + channel) * source);
  A sum = 0;
  for (int k = z.first[oz]; k < z.first[oz + 1]; ++k) {
    for (int j = y.first[oy]; j < y.first[oy + 1]; ++j) {
      const long line = (static_cast<long>(z.place[k]) * y.from + y.place[j]) * x.from;
      A part = 0;
      for (int l = x.first[ox]; l < x.first[ox + 1]; ++l)
        part += x.weight[l] * convert<A>(in[(line + x.place[l]) * step]);
      sum += z.weight[k] * y.weight[j] * part;
    }
  }
  to[index] = convert<T>(sum);
}

template <class From, class To, class A, class I>
CRESSET_DEVICE_FN void resize_axis(const From* from, To* to, const ResizeAxisArgs<A>& a) {
  const ResizedAxis<A>& x = a.axis;
  const long index = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.outer * x.to * a.inner) return;
  const I i = static_cast<I>(index);
  const I row = resize_divided(i, a.inner, a.by_inner);
  const I inside = i - row * static_cast<I>(a.inner);
  const I block = resize_divided(row, x.to, x.by_to);
  const I o = row - block * static_cast<I>(x.to);
  const From* const in = from + static_cast<long>(block) * x.from * a.inner + inside;
  A sum = 0;
  for (int k = x.first[o]; k < x.first[o + 1]; ++k)
    sum += x.weight[k] * convert<A>(in[x.place[k] * a.inner]);
  to[index] = convert<To>(sum);
}

// kPack neighbours of the result: along x, or of one place's channels.
template <class T, int kPack, class A, class I>
CRESSET_DEVICE_FN void resize_copies(const T* from, T* to, const ResizeArgs<A>& a) {
  const ResizedAxis<A>&z = a.axis[0], &y = a.axis[1], &x = a.axis[2];
  const long first = (static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  if (first >= a.samples * a.channels * z.to * y.to * x.to) return;
  const I i = static_cast<I>(first);
  const I inner = a.channels_last ? resize_divided(i, a.channels, a.by_channels) : i;
  const I row = resize_divided(inner, x.to, x.by_to), ox = inner - row * static_cast<I>(x.to);
  const I slab = resize_divided(row, y.to, y.by_to), oy = row - slab * static_cast<I>(y.to);
  const I outer = resize_divided(slab, z.to, z.by_to), oz = slab - outer * static_cast<I>(z.to);
  const long line = ((outer * z.from + z.place[oz]) * y.from + y.place[oy]) * x.from;
  Pack<T, kPack> values;
  if (a.channels_last) {
    const long channel = i - inner * static_cast<I>(a.channels);
    values = load_pack<kPack>(from + (line + x.place[ox]) * a.channels + channel);
  } else {
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) values.v[j] = from[line + x.place[ox + j]];
  }
  store_pack(to + first, values);
}

} // namespace at::device

#define CRESSET_RESIZE(T, A)                                                                       \
  CRESSET_KERNEL(256)                                                                              \
  resize_##T(const cresset_##T* from, cresset_##T* to, at::device::ResizeArgs<A> a) {              \
    if (a.small)                                                                                   \
      at::device::resize<cresset_##T, A, int>(from, to, a);                                        \
    else                                                                                           \
      at::device::resize<cresset_##T, A, long>(from, to, a);                                       \
  }
CRESSET_RESIZE(f32, float)
CRESSET_RESIZE(f64, double)
CRESSET_RESIZE(f16, float)
CRESSET_RESIZE(bf16, float)

#define CRESSET_RESIZE_AXIS(From, To, A)                                                           \
  CRESSET_KERNEL(256)                                                                              \
  resize_axis_##From##_##To(const cresset_##From* from, cresset_##To* to,                          \
                            at::device::ResizeAxisArgs<A> a) {                                     \
    if (a.small)                                                                                   \
      at::device::resize_axis<cresset_##From, cresset_##To, A, int>(from, to, a);                  \
    else                                                                                           \
      at::device::resize_axis<cresset_##From, cresset_##To, A, long>(from, to, a);                 \
  }
CRESSET_RESIZE_AXIS(f32, f32, float)
CRESSET_RESIZE_AXIS(f64, f64, double)
CRESSET_RESIZE_AXIS(f16, f32, float)
CRESSET_RESIZE_AXIS(bf16, f32, float)
CRESSET_RESIZE_AXIS(f32, f16, float)
CRESSET_RESIZE_AXIS(f32, bf16, float)

#define CRESSET_RESIZE_COPIES(T)                                                                   \
  CRESSET_KERNEL(256)                                                                              \
  resize_copies_##T(const cresset_##T* from, cresset_##T* to, at::device::ResizeArgs<float> a,     \
                    int packed) {                                                                  \
    if (packed && a.small)                                                                         \
      at::device::resize_copies<cresset_##T, 16 / sizeof(cresset_##T), float, int>(from, to, a);   \
    else if (a.small)                                                                              \
      at::device::resize_copies<cresset_##T, 1, float, int>(from, to, a);                          \
    else                                                                                           \
      at::device::resize_copies<cresset_##T, 1, float, long>(from, to, a);                         \
  }
CRESSET_RESIZE_COPIES(u8)
CRESSET_RESIZE_COPIES(i16)
CRESSET_RESIZE_COPIES(i32)
CRESSET_RESIZE_COPIES(i64)
