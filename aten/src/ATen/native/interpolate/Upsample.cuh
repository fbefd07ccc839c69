// Resizing by sums over taps along each axis (Taps.h), and the gradient, which is the same with the
// transposed taps: one kernel for every mode. One thread computes one element of the result.
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
  if (a.copies) {
    const long at = (static_cast<long>(z.place[oz]) * y.from + y.place[oy]) * x.from + x.place[ox];
    to[index] = in[at * step];
    return;
  }
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
CRESSET_RESIZE(u8, float)
