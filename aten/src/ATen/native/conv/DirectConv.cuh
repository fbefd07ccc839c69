// The three products of a convolution by their definition, for GPUs without cuDNN and for what
// cuDNN has no kernel for. All tensors are contiguous. Forward and input gradient give one thread
// to an element of the result; the weight gradient gives it a block, whose fold has a fixed order,
// so results repeat to the last bit.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/native/conv/ConvNumbers.h>

namespace at::device {

using native::ConvGeometry;

// The tap (kz, ky, kx) that number `tap` is.
struct Tap {
  long k[3];
  CRESSET_DEVICE_FN Tap(const ConvGeometry& g, long tap)
      : k{tap / (g.kernel[2] * g.kernel[1]), tap / g.kernel[2] % g.kernel[1], tap % g.kernel[2]} {}
};
struct Position {
  long p[3];
  CRESSET_DEVICE_FN Position(const int64_t* sizes, long i)
      : p{i / (sizes[2] * sizes[1]), i / sizes[2] % sizes[1], i % sizes[2]} {}
};

// Where in the input's plane a tap at an output position reads, or -1 for the padding.
CRESSET_DEVICE_FN long input_place(const ConvGeometry& g, const Position& out, const Tap& tap) {
  long place = 0;
  CRESSET_UNROLL
  for (int d = 0; d < 3; ++d) {
    const long x = out.p[d] * g.stride[d] - g.padding[d] + tap.k[d] * g.dilation[d];
    if (x < 0 || x >= g.in[d]) return -1;
    place = place * g.in[d] + x;
  }
  return place;
}
// Where in the output's plane a tap reads the input position, or -1.
CRESSET_DEVICE_FN long output_place(const ConvGeometry& g, const Position& in, const Tap& tap) {
  long place = 0;
  CRESSET_UNROLL
  for (int d = 0; d < 3; ++d) {
    const long x = in.p[d] + g.padding[d] - tap.k[d] * g.dilation[d];
    if (x < 0 || x % g.stride[d] != 0 || x / g.stride[d] >= g.out[d]) return -1;
    place = place * g.out[d] + x / g.stride[d];
  }
  return place;
}

template <class T>
CRESSET_DEVICE_FN void conv_forward(const T* x, const T* w, T* y, const ConvGeometry& g) {
  const long plane = g.out_plane(), i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= g.n * g.o * plane) return;
  const long o = i / plane % g.o, sample = i / plane / g.o, channels = g.c_per_group();
  const Position here(g.out, i % plane);
  const T* in = x + (sample * g.c + o / g.o_per_group() * channels) * g.in_plane();
  const T* weight = w + o * channels * g.kernel_volume();
  opmath_t<T> sum = 0;
  for (long tap = 0; tap < g.kernel_volume(); ++tap) {
    const long place = input_place(g, here, Tap(g, tap));
    if (place < 0) continue;
    for (long c = 0; c < channels; ++c)
      sum += convert<opmath_t<T>>(in[c * g.in_plane() + place]) *
             convert<opmath_t<T>>(weight[c * g.kernel_volume() + tap]);
  }
  y[i] = convert<T>(sum);
}

template <class T>
CRESSET_DEVICE_FN void conv_input(const T* dy, const T* w, T* dx, const ConvGeometry& g) {
  const long plane = g.in_plane(), i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= g.n * g.c * plane) return;
  const long c = i / plane % g.c, sample = i / plane / g.c, channels = g.c_per_group(),
             group = c / channels, outputs = g.o_per_group();
  const Position here(g.in, i % plane);
  const T* grad = dy + (sample * g.o + group * outputs) * g.out_plane();
  const T* weight = w + (group * outputs * channels + c % channels) * g.kernel_volume();
  opmath_t<T> sum = 0;
  for (long tap = 0; tap < g.kernel_volume(); ++tap) {
    const long place = output_place(g, here, Tap(g, tap));
    if (place < 0) continue;
    for (long o = 0; o < outputs; ++o)
      sum += convert<opmath_t<T>>(grad[o * g.out_plane() + place]) *
             convert<opmath_t<T>>(weight[o * channels * g.kernel_volume() + tap]);
  }
  dx[i] = convert<T>(sum);
}

// One block for each element of the weight.
template <class T>
CRESSET_DEVICE_FN void conv_weight(const T* dy, const T* x, T* dw, const ConvGeometry& g) {
  CRESSET_SHARED opmath_t<T> scratch[32];
  const long i = blockIdx.x, channels = g.c_per_group();
  const long o = i / g.kernel_volume() / channels;
  const long c = o / g.o_per_group() * channels + i / g.kernel_volume() % channels;
  const Tap tap(g, i % g.kernel_volume());
  opmath_t<T> sum = 0;
  for (long j = threadIdx.x; j < g.n * g.out_plane(); j += blockDim.x) {
    const long sample = j / g.out_plane(), p = j % g.out_plane();
    const long place = input_place(g, Position(g.out, p), tap);
    if (place < 0) continue;
    sum += convert<opmath_t<T>>(dy[(sample * g.o + o) * g.out_plane() + p]) *
           convert<opmath_t<T>>(x[(sample * g.c + c) * g.in_plane() + place]);
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) dw[i] = convert<T>(sum);
}

} // namespace at::device

#define CRESSET_CONV(T)                                                                            \
  CRESSET_KERNEL(256)                                                                              \
  conv_forward_##T(const cresset_##T* x, const cresset_##T* w, cresset_##T* y,                     \
                   at::native::ConvGeometry g) {                                                   \
    at::device::conv_forward(x, w, y, g);                                                          \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  conv_input_##T(const cresset_##T* dy, const cresset_##T* w, cresset_##T* dx,                     \
                 at::native::ConvGeometry g) {                                                     \
    at::device::conv_input(dy, w, dx, g);                                                          \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  conv_weight_##T(const cresset_##T* dy, const cresset_##T* x, cresset_##T* dw,                    \
                  at::native::ConvGeometry g) {                                                    \
    at::device::conv_weight(dy, x, dw, g);                                                         \
  }
CRESSET_CONV(f32)
CRESSET_CONV(f64)
CRESSET_CONV(f16)
CRESSET_CONV(bf16)
