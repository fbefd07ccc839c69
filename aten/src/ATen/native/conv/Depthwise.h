// Convolutions with one input channel per group, by direct loops over whole planes: a matrix
// product with so few rows would spend its time on moving windows. Sums are kept in the
// accumulation type.
#pragma once
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/conv/Columns.h>
#include <ATen/native/conv/ConvKernels.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/parallel/Parallel.h>

#include <memory>

namespace at::native {

// f(window row's flat start, image row's flat start, x) for each row where kernel position (kd, kh,
// kw) meets the image.
template <class F>
void for_meeting_rows(const ConvGeometry& g, int64_t kd, int64_t kh, int64_t kw, const F& f) {
  const ValidRange z = valid_range(g, 0, kd), y = valid_range(g, 1, kh), x = valid_range(g, 2, kw);
  if (x.lo >= x.hi) return;
  for (int64_t od = z.lo; od < z.hi; ++od) {
    const int64_t iz = od * g.stride[0] + z.off;
    for (int64_t oh = y.lo; oh < y.hi; ++oh) {
      const int64_t iy = oh * g.stride[1] + y.off;
      f((od * g.out[1] + oh) * g.out[2], (iz * g.in[1] + iy) * g.in[2], x);
    }
  }
}

// to[i] += w * from[i * step]
template <class A, class T> __attribute__((optimize("O3"))) void
add_scaled(A* __restrict to, const T* __restrict from, A w, int64_t count, int64_t step) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<A>(to[i] + w * static_cast<A>(from[i]));
  } else {
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<A>(to[i] + w * static_cast<A>(from[i * step]));
  }
}
// to[i * step] += w * from[i]
template <class T> __attribute__((optimize("O3"))) void
spread_scaled(T* __restrict to, const T* __restrict from, T w, int64_t count, int64_t step) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] + w * from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * step] = static_cast<T>(to[i * step] + w * from[i]);
  }
}
// Eight partial sums in a fixed order, so that the loop can be vectorized.
template <class T>
__attribute__((optimize("O3"))) T dot_strided(const T* a, const T* b, int64_t count, int64_t step) {
  T part[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int j = 0; j < 8; ++j) part[j] = static_cast<T>(part[j] + a[i + j] * b[(i + j) * step]);
  for (int j = 0; i < count; ++i, ++j) part[j] = static_cast<T>(part[j] + a[i] * b[i * step]);
  for (int width = 4; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) part[j] = static_cast<T>(part[j] + part[j + width]);
  return part[0];
}

// Planes that a thread takes at least.
inline int64_t plane_grain(const ConvGeometry& g) { return g.out_plane() > kStretch ? 1 : 4; }

template <class T> void depthwise_forward(const ConvGeometry& g, const T* input, const T* weight,
                                          const T* bias, T* out, const PlaneStrides& s) {
  using A = gemm::acc_t<T>;
  const int64_t positions = g.out_plane(), og = g.o_per_group(), volume = g.kernel_volume();
  parallel_for(0, g.n * g.o, plane_grain(g), [&](int64_t begin, int64_t end) {
    const Tensor memory = detail::empty({positions}, c10::scalar_type_of<A>);
    A* sum = static_cast<A*>(memory.data_ptr());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / g.o, o = i % g.o;
      const T* image = input + (n * g.c + o / og) * g.in_plane();
      std::fill(sum, sum + positions, bias ? static_cast<A>(bias[o]) : A(0));
      for_kernel(g, [&](int64_t kd, int64_t kh, int64_t kw, int64_t k) {
        const A w = static_cast<A>(weight[o * volume + k]);
        for_meeting_rows(g, kd, kh, kw, [&](int64_t window, int64_t row, const ValidRange& x) {
          add_scaled<A, T>(sum + window + x.lo, image + row + x.off + x.lo * g.stride[2], w,
                           x.hi - x.lo, g.stride[2]);
        });
      });
      T* to = out + n * s.sample + o * s.channel;
      for (int64_t p = 0; p < positions; ++p) to[p * s.position] = static_cast<T>(sum[p]);
    }
  });
}

// A contiguous copy of one plane of the small side, made only where it does not lie contiguous.
template <class T> const T* plane_of(const T* from, int64_t stride, int64_t count, T* buffer) {
  if (stride == 1) return from;
  for (int64_t p = 0; p < count; ++p) buffer[p] = from[p * stride];
  return buffer;
}

template <class T> void depthwise_input_gradient(const ConvGeometry& g, const T* grad_out,
                                                 const PlaneStrides& s, const T* weight,
                                                 T* grad_in) {
  const int64_t positions = g.out_plane(), og = g.o_per_group(), volume = g.kernel_volume();
  parallel_for(0, g.n * g.c, plane_grain(g), [&](int64_t begin, int64_t end) {
    const Tensor memory = detail::empty({positions}, c10::scalar_type_of<T>);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / g.c, c = i % g.c;
      T* image = grad_in + i * g.in_plane();
      std::fill(image, image + g.in_plane(), T(0));
      for (int64_t o = c * og; o < (c + 1) * og; ++o) {
        const T* grad = plane_of(grad_out + n * s.sample + o * s.channel, s.position, positions,
                                 static_cast<T*>(memory.data_ptr()));
        for_kernel(g, [&](int64_t kd, int64_t kh, int64_t kw, int64_t k) {
          const T w = weight[o * volume + k];
          for_meeting_rows(g, kd, kh, kw, [&](int64_t window, int64_t row, const ValidRange& x) {
            spread_scaled<T>(image + row + x.off + x.lo * g.stride[2], grad + window + x.lo, w,
                             x.hi - x.lo, g.stride[2]);
          });
        });
      }
    }
  });
}

template <class T> void depthwise_weight_gradient(const ConvGeometry& g, const T* grad_out,
                                                  const PlaneStrides& s, const T* input,
                                                  T* grad_weight) {
  const int64_t positions = g.out_plane(), og = g.o_per_group(), volume = g.kernel_volume();
  parallel_for(0, g.o, 1, [&](int64_t begin, int64_t end) {
    const Tensor memory = detail::empty({positions}, c10::scalar_type_of<T>);
    for (int64_t o = begin; o < end; ++o) {
      T* sums = grad_weight + o * volume;
      std::fill(sums, sums + volume, T(0));
      for (int64_t n = 0; n < g.n; ++n) {
        const T* image = input + (n * g.c + o / og) * g.in_plane();
        const T* grad = plane_of(grad_out + n * s.sample + o * s.channel, s.position, positions,
                                 static_cast<T*>(memory.data_ptr()));
        for_kernel(g, [&](int64_t kd, int64_t kh, int64_t kw, int64_t k) {
          T sum = T(0);
          for_meeting_rows(g, kd, kh, kw, [&](int64_t window, int64_t row, const ValidRange& x) {
            const T* from = image + row + x.off + x.lo * g.stride[2];
            sum = static_cast<T>(
                sum + dot_strided<T>(grad + window + x.lo, from, x.hi - x.lo, g.stride[2]));
          });
          sums[k] = static_cast<T>(sums[k] + sum);
        });
      }
    }
  });
}

} // namespace at::native
