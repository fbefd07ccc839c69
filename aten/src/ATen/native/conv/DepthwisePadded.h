// Depthwise convolutions over planes copied with their padding: two-dimensional ones with stride 1
// along the row and contiguous small sides, in float and double. The loops are in
// Depthwise.simd.cpp; what does not fit here is left to Depthwise.h.
#pragma once
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/conv/ConvKernels.h>
#include <ATen/native/conv/DepthwiseKernels.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cstring>

namespace at::native {

// One plane of `height` x `width` with zeros around it, and the kernel's places in it.
struct PaddedPlane {
  int64_t height, width, top, left, pitch, rows_total;
  DimVector offsets;

  PaddedPlane(const ConvGeometry& g, const int64_t* plane, int64_t top_, int64_t left_)
      : height(plane[1]), width(plane[2]), top(top_), left(left_), pitch(width + 2 * left_),
        rows_total(height + 2 * top_) {
    for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
      for (int64_t kw = 0; kw < g.kernel[2]; ++kw)
        offsets.push_back(kh * g.dilation[1] * pitch + kw * g.dilation[2]);
  }
  int64_t elements() const { return rows_total * pitch + depthwise::kSlack; }
  template <class T> Tensor scratch() const {
    const Tensor memory = detail::empty({elements()}, c10::scalar_type_of<T>);
    std::memset(memory.data_ptr(), 0, memory.nbytes());
    return memory;
  }
  // Only the inside: the zeros around it stay from one plane to the next.
  template <class T> void fill(const T* plane, T* padded) const {
    for (int64_t y = 0; y < height; ++y)
      std::memcpy(padded + (y + top) * pitch + left, plane + y * width,
                  static_cast<size_t>(width) * sizeof(T));
  }
};

inline bool padded_depthwise_fits(const ConvGeometry& g, const PlaneStrides& s) {
  constexpr int64_t kMaxPadded = 1 << 22; // a plane of scratch for each thread
  const auto padded = [&](int d) { return g.in[d] + 2 * g.padding[d]; };
  return s.position == 1 && g.stride[2] == 1 && g.in[0] == 1 && g.out[0] == 1 && g.kernel[0] == 1 &&
         g.padding[0] == 0 && g.out[2] >= 8 && padded(1) < kMaxPadded && padded(2) < kMaxPadded &&
         padded(1) * padded(2) < kMaxPadded;
}

template <class T> void padded_depthwise_forward(const ConvGeometry& g, const T* input,
                                                 const T* weight, const T* bias, T* out,
                                                 const PlaneStrides& s) {
  const PaddedPlane plane(g, g.in, g.padding[1], g.padding[2]);
  const depthwise::PlaneShape shape{g.out[1], g.out[2], plane.pitch * g.stride[1],
                                    g.kernel_volume(), plane.offsets.data()};
  const auto loop = depthwise::table().forward[static_cast<int>(c10::scalar_type_of<T>)];
  const int64_t og = g.o_per_group(), volume = g.kernel_volume();
  parallel_for(0, g.n * g.o, 4, [&](int64_t begin, int64_t end) {
    const Tensor memory = plane.scratch<T>();
    T* padded = static_cast<T*>(memory.data_ptr());
    int64_t held = -1; // outputs of one group share their input
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / g.o, o = i % g.o, from = n * g.c + o / og;
      if (from != held) plane.fill(input + from * g.in_plane(), padded);
      held = from;
      loop(shape, padded, weight + o * volume, bias ? bias + o : nullptr,
           out + n * s.sample + o * s.channel);
    }
  });
}

// The input's gradient is the convolution of the output's gradient with the kernel turned round;
// it needs stride 1, no more padding than the kernel reaches, and one output per input.
inline bool padded_depthwise_turns_round(const ConvGeometry& g, const PlaneStrides& s) {
  const auto reach = [&](int d) { return g.dilation[d] * (g.kernel[d] - 1); };
  const auto outer = [&](int d) { return g.out[d] + 2 * (reach(d) - g.padding[d]); };
  return padded_depthwise_fits(g, s) && g.stride[1] == 1 && g.o_per_group() == 1 &&
         g.padding[1] <= reach(1) && g.padding[2] <= reach(2) && outer(1) * outer(2) < (1 << 22);
}

template <class T> void padded_depthwise_input_gradient(const ConvGeometry& g, const T* grad_out,
                                                        const PlaneStrides& s, const T* weight,
                                                        T* grad_in) {
  const PaddedPlane plane(g, g.out, g.dilation[1] * (g.kernel[1] - 1) - g.padding[1],
                          g.dilation[2] * (g.kernel[2] - 1) - g.padding[2]);
  const depthwise::PlaneShape shape{g.in[1], g.in[2], plane.pitch, g.kernel_volume(),
                                    plane.offsets.data()};
  const auto loop = depthwise::table().forward[static_cast<int>(c10::scalar_type_of<T>)];
  const int64_t volume = g.kernel_volume();
  parallel_for(0, g.n * g.c, 4, [&](int64_t begin, int64_t end) {
    const Tensor memory = plane.scratch<T>();
    T* padded = static_cast<T*>(memory.data_ptr());
    DimVector turned_memory((static_cast<size_t>(volume) * sizeof(T) + 7) / 8);
    T* turned = reinterpret_cast<T*>(turned_memory.data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / g.c, c = i % g.c;
      plane.fill(grad_out + n * s.sample + c * s.channel, padded);
      std::reverse_copy(weight + c * volume, weight + (c + 1) * volume, turned);
      loop(shape, padded, turned, nullptr, grad_in + i * g.in_plane());
    }
  });
}

template <class T> void padded_depthwise_weight_gradient(const ConvGeometry& g, const T* grad_out,
                                                         const PlaneStrides& s, const T* input,
                                                         T* grad_weight) {
  const PaddedPlane plane(g, g.in, g.padding[1], g.padding[2]);
  const depthwise::PlaneShape shape{g.out[1], g.out[2], plane.pitch * g.stride[1],
                                    g.kernel_volume(), plane.offsets.data()};
  const auto loop = depthwise::table().weight[static_cast<int>(c10::scalar_type_of<T>)];
  const int64_t og = g.o_per_group(), volume = g.kernel_volume();
  parallel_for(0, g.o, 1, [&](int64_t begin, int64_t end) {
    const Tensor memory = plane.scratch<T>();
    T* padded = static_cast<T*>(memory.data_ptr());
    for (int64_t o = begin; o < end; ++o) {
      T* sums = grad_weight + o * volume;
      std::fill(sums, sums + volume, T(0));
      for (int64_t n = 0; n < g.n; ++n) {
        plane.fill(input + (n * g.c + o / og) * g.in_plane(), padded);
        loop(shape, padded, grad_out + n * s.sample + o * s.channel, sums);
      }
    }
  });
}

} // namespace at::native
