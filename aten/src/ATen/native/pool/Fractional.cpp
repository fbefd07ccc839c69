// Fractional max pooling: windows of one size at places drawn per plane. From one random number u
// in [0, 1) and the mean step a, window i begins at floor((i + u) * a) - floor(u * a), the last at
// the end.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/pool/Native.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace at::native {
namespace {

struct Volume {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t plane(const int64_t* size) const { return size[0] * size[1] * size[2]; }
};

Volume volume_of(IntArrayRef input, IntArrayRef kernel, IntArrayRef output) {
  Volume v;
  const size_t dims = kernel.size();
  for (size_t i = 0; i < dims; ++i) {
    v.in[3 - dims + i] = input[input.size() - dims + i];
    v.out[3 - dims + i] = output[i];
    v.kernel[3 - dims + i] = kernel[i];
  }
  return v;
}

// A sample outside of [0, 1) must not lead outside of the plane.
template <class T>
void starts(T sample, int64_t in, int64_t out, int64_t kernel, std::vector<int64_t>& begins) {
  begins.assign(out, in - kernel);
  if (out < 2) return;
  const T step = static_cast<T>(in - kernel) / static_cast<T>(out - 1);
  Steps steps;
  for (int64_t i = 0; i + 1 < out; ++i) {
    steps.add(4);
    const T place = (static_cast<T>(i) + sample) * step, base = sample * step;
    const int64_t start = place == place && place < T(1e15) && place > T(-1e15)
                              ? static_cast<int64_t>(place) - static_cast<int64_t>(base)
                              : 0;
    begins[i] = std::clamp<int64_t>(start, 0, in - kernel);
  }
}

template <class T> void pool_plane(const Volume& v, const std::vector<int64_t>* begins, const T* in,
                                   T* out, int64_t* places) {
  const int64_t cost = v.kernel[0] * v.kernel[1] * v.kernel[2];
  const int64_t rows = v.out[0] * v.out[1], width = v.out[2];
  parallel_for(0, rows * width, std::max<int64_t>(1, 32768 / cost), [&](int64_t b, int64_t e) {
    Steps steps;
    for (int64_t p = b; p < e; ++p) {
      const int64_t w = p % width, h = p / width % v.out[1], d = p / width / v.out[1];
      steps.add(8 + cost);
      T best = static_cast<T>(-std::numeric_limits<float>::infinity());
      int64_t where = (begins[0][d] * v.in[1] + begins[1][h]) * v.in[2] + begins[2][w];
      for (int64_t z = begins[0][d]; z < begins[0][d] + v.kernel[0]; ++z)
        for (int64_t y = begins[1][h]; y < begins[1][h] + v.kernel[1]; ++y)
          for (int64_t x = begins[2][w]; x < begins[2][w] + v.kernel[2]; ++x) {
            const int64_t i = (z * v.in[1] + y) * v.in[2] + x;
            if (in[i] > best || in[i] != in[i]) best = in[i], where = i;
          }
      out[p] = best;
      places[p] = where;
    }
  });
}

void fractional(const Tensor& self, IntArrayRef kernel, IntArrayRef output, const Tensor& samples,
                const Tensor& out, const Tensor& indices, const char* name) {
  const Volume v = volume_of(self.sizes(), kernel, output);
  const int64_t dims = static_cast<int64_t>(kernel.size()), in = v.plane(v.in),
                small = v.plane(v.out);
  dtype_switch<FloatingTypes>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    if (out.numel() == 0) return;
    const Tensor x = self.contiguous(), u = samples.contiguous();
    const Tensor values = out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type());
    const Tensor places = indices.is_contiguous() ? indices : detail::empty(indices.sizes(), kLong);
    const T* from = static_cast<const T*>(x.data_ptr());
    const T* draws = static_cast<const T*>(u.data_ptr());
    T* to = static_cast<T*>(values.data_ptr());
    int64_t* place_data = places.data_ptr<int64_t>();
    {
      const BlockingRegion unlocked;
      parallel_for(0, self.numel() / in, std::max<int64_t>(1, 16384 / in),
                   [&](int64_t begin, int64_t end) {
                     std::vector<int64_t> first[3] = {{0}, {0}, {0}};
                     for (int64_t p = begin; p < end; ++p) {
                       for (int64_t i = 0; i < dims; ++i) {
                         // Over planes the first number is the width's; over volumes they stand in
                         // order.
                         const A draw = static_cast<A>(draws[p * dims + (dims == 2 ? 1 - i : i)]);
                         const int64_t d = 3 - dims + i;
                         starts<A>(draw, v.in[d], v.out[d], v.kernel[d], first[d]);
                       }
                       pool_plane(v, first, from + p * in, to + p * small, place_data + p * small);
                     }
                   });
    }
    if (!values.is_same(out)) out.copy_(values);
    if (!places.is_same(indices)) indices.copy_(places);
  });
}

void fractional_backward(const Tensor& grad, const Tensor& self, size_t dims, const Tensor& indices,
                         const Tensor& out, const char* name) {
  dtype_switch<FloatingTypes>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    if (out.numel() == 0) return;
    const Tensor g = grad.contiguous(), places = indices.contiguous();
    const Tensor target = out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type());
    const int64_t in = c10::checked_numel(self.sizes().slice(self.dim() - dims, dims));
    const int64_t small = c10::checked_numel(grad.sizes().slice(grad.dim() - dims, dims));
    const T* from = static_cast<const T*>(g.data_ptr());
    const int64_t* place_data = places.data_ptr<int64_t>();
    T* to = static_cast<T*>(target.data_ptr());
    {
      const BlockingRegion unlocked;
      parallel_for(
          0, self.numel() / in, std::max<int64_t>(1, 16384 / in), [&](int64_t begin, int64_t end) {
            std::vector<A> sum(in);
            for (int64_t p = begin; p < end; ++p) {
              std::fill(sum.begin(), sum.end(), A(0));
              serial_for(p * small, (p + 1) * small, 8, [&](int64_t b, int64_t e) {
                for (int64_t i = b; i < e; ++i) {
                  const int64_t place = place_data[i];
                  TORCH_CHECK(place >= 0 && place < in, "Found an invalid max index: ", place,
                              " (input planes have ", in, " elements)");
                  sum[place] += static_cast<A>(from[i]);
                }
              });
              std::transform(sum.begin(), sum.end(), to + p * in,
                             [](A s) { return static_cast<T>(s); });
            }
          });
    }
    if (!target.is_same(out)) out.copy_(target);
  });
}

} // namespace

void fractional_max_pool2d_cpu(const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                               const Tensor& samples, const Tensor& out, const Tensor& indices) {
  fractional(self, kernel, output, samples, out, indices, "fractional_max_pool2d_out_frame_cpu");
}
void fractional_max_pool3d_cpu(const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                               const Tensor& samples, const Tensor& out, const Tensor& indices) {
  fractional(self, kernel, output, samples, out, indices, "fractional_max_pool3d_out_frame");
}
void fractional_max_pool2d_backward_cpu(const Tensor& grad, const Tensor& self, IntArrayRef,
                                        IntArrayRef, const Tensor& indices, const Tensor& out) {
  fractional_backward(grad, self, 2, indices, out, "fractional_max_pool2d_backward_out_frame");
}
void fractional_max_pool3d_backward_cpu(const Tensor& grad, const Tensor& self, IntArrayRef,
                                        IntArrayRef, const Tensor& indices, const Tensor& out) {
  fractional_backward(grad, self, 3, indices, out, "fractional_max_pool3d_backward_out_frame");
}

} // namespace at::native

namespace at::meta {
namespace {

void fractional_shape(OutputBuilder& out, const Tensor& self, IntArrayRef kernel,
                      IntArrayRef output, const Tensor& samples, int64_t dims, const char* name,
                      const char* op) {
  static const char* const words[] = {"time", "height", "width"};
  const auto wanted = static_cast<size_t>(dims);
  TORCH_CHECK(kernel.size() == wanted, name,
              ": kernel_size must either be a single Int or tuple of Ints");
  TORCH_CHECK(output.size() == wanted, name,
              ": output_size must either be a single Int or tuple of Ints");
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, op, "(): Expected ", dims + 1,
              "D or ", dims + 2, "D tensor, but got: ", self.sizes());
  const bool batched = self.dim() == dims + 2;
  for (int64_t d = batched ? 1 : 0; d < self.dim(); ++d)
    TORCH_CHECK(self.size(d) > 0, op,
                "(): Expected input to have non-zero size for non-batch dimensions, but got",
                self.sizes(), " with dimension ", d, " being empty.");
  TORCH_CHECK(samples.scalar_type() == self.scalar_type(),
              "Expect _random_samples to have the same dtype as input");
  TORCH_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ",
              samples.dim());
  TORCH_CHECK(samples.size(0) >= (batched ? self.size(0) : 1),
              "Expect _random_samples.size(0) no less then input batch size.");
  TORCH_CHECK(samples.size(1) == self.size(batched ? 1 : 0),
              "Expect _random_samples.size(1) equals to input channel size.");
  TORCH_CHECK(samples.size(2) == dims, "Expect _random_samples.size(2) equals to ", dims, "; got ",
              samples.size(2), ".");
  DimVector sizes(self.sizes());
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t in = self.size(self.dim() - dims + i);
    const char* word = words[3 - dims + i];
    TORCH_CHECK(kernel[i] > 0 && output[i] >= 0, name,
                ": kernel_size must be greater than zero and output_size must not be negative");
    TORCH_CHECK(__int128(output[i]) + kernel[i] - 1 <= in, op, "(): pool ", word, " ", kernel[i],
                " too large relative to input ", word, " ", in);
    sizes[self.dim() - dims + i] = output[i];
  }
  out.set(0, sizes, self.scalar_type());
  out.set(1, sizes, kLong);
}

void fractional_backward_shape(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                               const Tensor& indices, int64_t dims, const char* op) {
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, op, ": unexpected input of size ",
              self.sizes());
  TORCH_CHECK(grad.dim() == self.dim() && grad.sizes().equals(indices.sizes()), op,
              ": gradOutput sizes unexpected: ", grad.sizes());
  for (int64_t d = 0; d < self.dim() - dims; ++d)
    TORCH_CHECK(grad.size(d) == self.size(d), op, ": gradOutput sizes unexpected: ", grad.sizes());
  TORCH_CHECK(indices.scalar_type() == kLong && grad.scalar_type() == self.scalar_type(), op,
              ": unexpected dtypes ", indices.scalar_type(), " of indices and ", grad.scalar_type(),
              " of grad_output");
  out.set(0, self.sizes(), self.scalar_type());
}

} // namespace

void meta_fractional_max_pool2d(OutputBuilder& out, const Tensor& self, IntArrayRef kernel,
                                IntArrayRef output, const Tensor& samples) {
  fractional_shape(out, self, kernel, output, samples, 2, "fractional_max_pool2d",
                   "fractional_max_pool2d");
}
void meta_fractional_max_pool3d(OutputBuilder& out, const Tensor& self, IntArrayRef kernel,
                                IntArrayRef output, const Tensor& samples) {
  fractional_shape(out, self, kernel, output, samples, 3, "fractional_max_pool3d",
                   "fractional_max_pool3d_out");
}
void meta_fractional_max_pool2d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                                         IntArrayRef, IntArrayRef, const Tensor& indices) {
  fractional_backward_shape(out, grad, self, indices, 2, "fractional_max_pool2d_backward");
}
void meta_fractional_max_pool3d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                                         IntArrayRef, IntArrayRef, const Tensor& indices) {
  fractional_backward_shape(out, grad, self, indices, 3, "fractional_max_pool3d_backward");
}

} // namespace at::meta
