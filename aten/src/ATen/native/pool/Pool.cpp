// Maximum and mean over windows, with their gradients. Planes are independent, hence the unit of
// work.
#define CRESSET_KERNEL_TU
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/native/pool/MaxRows.h>
#include <ATen/native/pool/Native.h>
#include <ATen/native/pool/PoolWindows.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace at::native {
namespace {

using AvgTypes = Concat<FloatingTypes, Types<int64_t>>::type;
template <class T> using acc_t = gemm::acc_t<T>;

// f(first plane, last plane) over fixed groups of planes.
template <class F> void for_planes(const PoolWindows& w, const F& f) {
  const BlockingRegion unlocked;
  const int64_t plane = std::max<int64_t>({w.in_plane(), w.out_plane(), 1});
  parallel_for(0, w.planes, std::max<int64_t>(1, 16384 / plane), f);
}

// f(position in the output plane, od, oh, ow)
template <class F> void for_outputs(const PoolWindows& w, const F& f) {
  int64_t p = 0;
  for (int64_t d = 0; d < w.out[0]; ++d)
    for (int64_t h = 0; h < w.out[1]; ++h)
      for (int64_t x = 0; x < w.out[2]; ++x) f(p++, d, h, x);
}

// f(position in the input plane) for the elements of one window.
template <class F>
void for_window(const PoolWindows& w, int64_t od, int64_t oh, int64_t ow, const F& f) {
  for (int64_t z = w.lo[0][od]; z < w.hi[0][od]; z += w.step[0])
    for (int64_t y = w.lo[1][oh]; y < w.hi[1][oh]; y += w.step[1]) {
      const int64_t row = (z * w.in[1] + y) * w.in[2];
      for (int64_t x = w.lo[2][ow]; x < w.hi[2][ow]; x += w.step[2]) f(row + x);
    }
}

template <class T> T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return static_cast<T>(-std::numeric_limits<float>::infinity());
  }
}

// NaN is larger than everything, and the last one counts.
template <class T> void max_window(const PoolWindows& w, const T* in, int64_t od, int64_t oh,
                                   int64_t ow, T& value, int64_t& place) {
  T best = lowest<T>();
  int64_t where = (w.lo[0][od] * w.in[1] + w.lo[1][oh]) * w.in[2] + w.lo[2][ow];
  for_window(w, od, oh, ow, [&](int64_t i) {
    const T v = in[i];
    if (v > best || v != v) best = v, where = i;
  });
  value = best;
  place = where;
}

// The windows [begin, end) of a row that are equal but for their place, which is all of them apart
// from those at the edges.
struct EqualWindows {
  int64_t begin = 0, end = 0, stride = 1, span = 0;
  explicit EqualWindows(const PoolWindows& w) {
    const int64_t count = w.out[2], middle = count / 2;
    const auto &lo = w.lo[2], &hi = w.hi[2];
    if (count < 2 || w.in_plane() > std::numeric_limits<int32_t>::max()) return;
    const int64_t from = std::min(middle, count - 2);
    stride = lo[from + 1] - lo[from], span = hi[from] - lo[from];
    const auto fits = [&](int64_t o) {
      return lo[o] == lo[from] + (o - from) * stride && hi[o] - lo[o] == span;
    };
    if (stride < 1 || span < 1) return;
    for (begin = from; begin > 0 && fits(begin - 1); --begin) {
    }
    for (end = from; end < count && fits(end); ++end) {
    }
  }
};

template <class T> void max_row(const PoolWindows& w, const EqualWindows& equal, const T* in,
                                int64_t od, int64_t oh, T* out, int64_t* indices,
                                std::vector<int64_t>& lines, std::vector<int32_t>& where) {
  const max_rows::RowFn fast =
      max_rows::table().row[static_cast<int>(c10::scalar_type_of<T>)]; // null: by window
  const int64_t begin = fast ? equal.begin : 0, end = fast ? equal.end : 0;
  for (int64_t x = 0; x < begin; ++x) max_window(w, in, od, oh, x, out[x], indices[x]);
  for (int64_t x = end; x < w.out[2]; ++x) max_window(w, in, od, oh, x, out[x], indices[x]);
  if (begin == end) return;
  lines.clear();
  for (int64_t z = w.lo[0][od]; z < w.hi[0][od]; z += w.step[0])
    for (int64_t y = w.lo[1][oh]; y < w.hi[1][oh]; y += w.step[1])
      lines.push_back((z * w.in[1] + y) * w.in[2] + w.lo[2][begin]);
  if (lines.empty()) {
    for (int64_t x = begin; x < end; ++x) max_window(w, in, od, oh, x, out[x], indices[x]);
    return;
  }
  const int64_t taps = (equal.span + w.step[2] - 1) / w.step[2];
  const max_rows::RowShape shape{
      end - begin, equal.stride, taps, w.step[2], static_cast<int64_t>(lines.size()), lines.data()};
  fast(shape, in, out + begin, where.data());
  for (int64_t x = begin; x < end; ++x) indices[x] = where[x - begin];
}

template <class T> void max_plane(const PoolWindows& w, const EqualWindows& equal, const T* in,
                                  T* out, int64_t* indices) {
  std::vector<int64_t> lines;
  std::vector<int32_t> where(equal.end - equal.begin);
  for (int64_t d = 0; d < w.out[0]; ++d)
    for (int64_t h = 0; h < w.out[1]; ++h) {
      const int64_t at = (d * w.out[1] + h) * w.out[2];
      max_row(w, equal, in, d, h, out + at, indices + at, lines, where);
    }
}

// The tensor a contiguous kernel writes, copied into `out` when that one lies otherwise.
struct Target {
  explicit Target(const Tensor& out)
      : out_(out),
        tensor(out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type())) {}
  void store() const {
    if (!tensor.is_same(out_)) out_.copy_(tensor);
  }

 private:
  const Tensor& out_;

 public:
  Tensor tensor;
};

template <class Kinds> void max_windows(const PoolWindows& w, const Tensor& self, const Tensor& out,
                                        const Tensor& indices, const char* name) {
  dtype_switch<Kinds>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out.numel() == 0) return;
    const Tensor x = self.contiguous();
    const Target values(out), places(indices);
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(values.tensor.data_ptr());
    int64_t* at = places.tensor.data_ptr<int64_t>();
    const EqualWindows equal(w);
    for_planes(w, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        max_plane(w, equal, from + i * w.in_plane(), to + i * w.out_plane(),
                  at + i * w.out_plane());
    });
    values.store();
    places.store();
  });
}

// Each gradient goes to the place its maximum came from.
void max_gradient(const PoolWindows& w, const Tensor& grad_output, const Tensor& indices,
                  const Tensor& grad_input, const char* name) {
  dtype_switch<RealTypes>(grad_output.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = acc_t<T>;
    if (grad_input.numel() == 0) return;
    const Tensor g = grad_output.contiguous(), places = indices.contiguous();
    const Target target(grad_input);
    const T* from = static_cast<const T*>(g.data_ptr());
    const int64_t* at = places.data_ptr<int64_t>();
    T* to = static_cast<T*>(target.tensor.data_ptr());
    const int64_t in = w.in_plane(), out = w.out_plane();
    for_planes(w, [&](int64_t begin, int64_t end) {
      std::vector<A> wide(std::is_same_v<A, T> ? 0 : in);
      for (int64_t i = begin; i < end; ++i) {
        A* sum = wide.data();
        if constexpr (std::is_same_v<A, T>) sum = to + i * in;
        std::fill(sum, sum + in, A(0));
        for (int64_t p = i * out; p < (i + 1) * out; ++p) {
          TORCH_CHECK(at[p] >= 0 && at[p] < in, "Found an invalid max index: ", at[p],
                      " (input planes have ", in, " elements)");
          sum[at[p]] = static_cast<A>(sum[at[p]] + static_cast<A>(from[p]));
        }
        if constexpr (!std::is_same_v<A, T>)
          std::transform(sum, sum + in, to + i * in, [](A v) { return static_cast<T>(v); });
      }
    });
    target.store();
  });
}

// What a window's sum is divided by.
struct Divisor {
  bool with_padding;
  std::optional<int64_t> fixed;
  int64_t of(const PoolWindows& w, int64_t od, int64_t oh, int64_t ow) const {
    if (fixed) return *fixed;
    if (with_padding) return w.full[0][od] * w.full[1][oh] * w.full[2][ow];
    return (w.hi[0][od] - w.lo[0][od]) * (w.hi[1][oh] - w.lo[1][oh]) * (w.hi[2][ow] - w.lo[2][ow]);
  }
};

void mean_windows(const PoolWindows& w, const Divisor& divisor, const Tensor& self,
                  const Tensor& out, const char* name) {
  dtype_switch<AvgTypes>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = acc_t<T>;
    if (out.numel() == 0) return;
    const Tensor x = self.contiguous();
    const Target target(out);
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(target.tensor.data_ptr());
    for_planes(w, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* plane = from + i * w.in_plane();
        for_outputs(w, [&](int64_t p, int64_t od, int64_t oh, int64_t ow) {
          A sum = A(0);
          int64_t count = 0;
          for_window(w, od, oh, ow, [&](int64_t e) { sum += static_cast<A>(plane[e]), ++count; });
          to[i * w.out_plane() + p] =
              count ? static_cast<T>(sum / static_cast<A>(divisor.of(w, od, oh, ow))) : T(0);
        });
      }
    });
    target.store();
  });
}

void mean_gradient(const PoolWindows& w, const Divisor& divisor, const Tensor& grad_output,
                   const Tensor& grad_input, const char* name) {
  dtype_switch<AvgTypes>(grad_output.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = acc_t<T>;
    if (grad_input.numel() == 0) return;
    const Tensor g = grad_output.contiguous();
    const Target target(grad_input);
    const T* from = static_cast<const T*>(g.data_ptr());
    T* to = static_cast<T*>(target.tensor.data_ptr());
    for_planes(w, [&](int64_t begin, int64_t end) {
      std::vector<A> sum(w.in_plane());
      for (int64_t i = begin; i < end; ++i) {
        std::fill(sum.begin(), sum.end(), A(0));
        for_outputs(w, [&](int64_t p, int64_t od, int64_t oh, int64_t ow) {
          const int64_t count = divisor.of(w, od, oh, ow);
          if (count == 0) return;
          const A share = static_cast<A>(from[i * w.out_plane() + p]) / static_cast<A>(count);
          for_window(w, od, oh, ow, [&](int64_t e) { sum[e] += share; });
        });
        std::transform(sum.begin(), sum.end(), to + i * w.in_plane(),
                       [](A v) { return static_cast<T>(v); });
      }
    });
    target.store();
  });
}

// `max_pool{2,3}d_with_indices` by the number of dimensions.
void max_pool(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
              IntArrayRef dilation, bool ceil_mode, const Tensor& out, const Tensor& indices,
              size_t dims, const char* name) {
  const PoolParams p = pool_params(kernel, stride, padding, dilation, ceil_mode, dims, name);
  max_windows<RealTypes>(fixed_windows(self.sizes(), out.sizes(), p), self, out, indices, name);
}
void max_pool_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                       IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                       bool ceil_mode, const Tensor& indices, const Tensor& out, size_t dims,
                       const char* name) {
  const PoolParams p = pool_params(kernel, stride, padding, dilation, ceil_mode, dims, name);
  max_gradient(fixed_windows(self.sizes(), grad.sizes(), p), grad, indices, out, name);
}
void avg_pool(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
              bool ceil_mode, bool include_pad, std::optional<int64_t> divisor, const Tensor& out,
              size_t dims, const char* name) {
  const PoolParams p = pool_params(kernel, stride, padding, {1}, ceil_mode, dims, name);
  mean_windows(fixed_windows(self.sizes(), out.sizes(), p), {include_pad, divisor}, self, out,
               name);
}
void avg_pool_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool include_pad,
                       std::optional<int64_t> divisor, const Tensor& out, size_t dims,
                       const char* name) {
  const PoolParams p = pool_params(kernel, stride, padding, {1}, ceil_mode, dims, name);
  mean_gradient(fixed_windows(self.sizes(), grad.sizes(), p), {include_pad, divisor}, grad, out,
                name);
}

} // namespace

void max_pool2d_with_indices_cpu(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                 IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                 const Tensor& out, const Tensor& indices) {
  max_pool(self, kernel, stride, padding, dilation, ceil_mode, out, indices, 2, "max_pool2d");
}
void max_pool3d_with_indices_cpu(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                 IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                 const Tensor& out, const Tensor& indices) {
  max_pool(self, kernel, stride, padding, dilation, ceil_mode, out, indices, 3, "max_pool3d");
}
void max_pool2d_with_indices_backward_cpu(const Tensor& grad, const Tensor& self,
                                          IntArrayRef kernel, IntArrayRef stride,
                                          IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                          const Tensor& indices, const Tensor& out) {
  max_pool_backward(grad, self, kernel, stride, padding, dilation, ceil_mode, indices, out, 2,
                    "max_pool2d");
}
void max_pool3d_with_indices_backward_cpu(const Tensor& grad, const Tensor& self,
                                          IntArrayRef kernel, IntArrayRef stride,
                                          IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                          const Tensor& indices, const Tensor& out) {
  max_pool_backward(grad, self, kernel, stride, padding, dilation, ceil_mode, indices, out, 3,
                    "max_pool3d");
}
void avg_pool2d_cpu(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                    bool ceil_mode, bool include_pad, std::optional<int64_t> divisor,
                    const Tensor& out) {
  avg_pool(self, kernel, stride, padding, ceil_mode, include_pad, divisor, out, 2, "avg_pool2d");
}
void avg_pool3d_cpu(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                    bool ceil_mode, bool include_pad, std::optional<int64_t> divisor,
                    const Tensor& out) {
  avg_pool(self, kernel, stride, padding, ceil_mode, include_pad, divisor, out, 3, "avg_pool3d");
}
void avg_pool2d_backward_cpu(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                             IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                             bool include_pad, std::optional<int64_t> divisor, const Tensor& out) {
  avg_pool_backward(grad, self, kernel, stride, padding, ceil_mode, include_pad, divisor, out, 2,
                    "avg_pool2d");
}
void avg_pool3d_backward_cpu(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                             IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                             bool include_pad, std::optional<int64_t> divisor, const Tensor& out) {
  avg_pool_backward(grad, self, kernel, stride, padding, ceil_mode, include_pad, divisor, out, 3,
                    "avg_pool3d");
}

void adaptive_max_pool2d_cpu(const Tensor& self, IntArrayRef, const Tensor& out,
                             const Tensor& indices) {
  max_windows<FloatingTypes>(adaptive_windows(self.sizes(), out.sizes(), 2), self, out, indices,
                             "adaptive_max_pool2d");
}
void adaptive_max_pool3d_cpu(const Tensor& self, IntArrayRef, const Tensor& out,
                             const Tensor& indices) {
  max_windows<FloatingTypes>(adaptive_windows(self.sizes(), out.sizes(), 3), self, out, indices,
                             "adaptive_max_pool3d");
}
void adaptive_max_pool2d_backward_cpu(const Tensor& grad, const Tensor& self, const Tensor& indices,
                                      const Tensor& out) {
  max_gradient(adaptive_windows(self.sizes(), grad.sizes(), 2), grad, indices, out,
               "adaptive_max_pool2d_backward");
}
void adaptive_max_pool3d_backward_cpu(const Tensor& grad, const Tensor& self, const Tensor& indices,
                                      const Tensor& out) {
  max_gradient(adaptive_windows(self.sizes(), grad.sizes(), 3), grad, indices, out,
               "adaptive_max_pool3d_backward");
}
void adaptive_avg_pool2d_cpu(const Tensor& self, IntArrayRef, const Tensor& out) {
  mean_windows(adaptive_windows(self.sizes(), out.sizes(), 2), {true, std::nullopt}, self, out,
               "adaptive_avg_pool2d");
}
void adaptive_avg_pool3d_cpu(const Tensor& self, IntArrayRef, const Tensor& out) {
  mean_windows(adaptive_windows(self.sizes(), out.sizes(), 3), {true, std::nullopt}, self, out,
               "adaptive_avg_pool3d");
}
void adaptive_avg_pool2d_backward_cpu(const Tensor& grad, const Tensor& self, const Tensor& out) {
  mean_gradient(adaptive_windows(self.sizes(), grad.sizes(), 2), {true, std::nullopt}, grad, out,
                "adaptive_avg_pool2d_backward");
}
void adaptive_avg_pool3d_backward_cpu(const Tensor& grad, const Tensor& self, const Tensor& out) {
  mean_gradient(adaptive_windows(self.sizes(), grad.sizes(), 3), {true, std::nullopt}, grad, out,
                "adaptive_avg_pool3d_backward");
}

} // namespace at::native
