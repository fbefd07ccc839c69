// Deformable convolution: an ordinary convolution whose window has an offset (and a weight, the
// mask) of its own at every place of the result. Where each point falls between four pixels is
// computed once per image and shared by the channels of an offset group; then columns and matrix
// products as in any convolution. In backward a plane of the input gathers its gradient in a fixed
// order and an offset sums over channels in theirs, so that the bits do not depend on the threads.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/vision/Vision.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/to.h>
#include <ATen/ops/transpose.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/SafeArithmetic.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace at::native::vision {
namespace {

struct Sizes {
  int64_t n, c, h, w;         // input
  int64_t o, kh, kw, oh, ow;  // output channels, kernel, places
  int64_t groups, per_offset; // channels of one offset group: per_offset
  int64_t taps() const { return kh * kw; }
  int64_t places() const { return oh * ow; }
  int64_t plane() const { return h * w; }
};

int64_t places_along(int64_t size, int64_t kernel, const DeformParams& p, int d) {
  const __int128 room =
      __int128(size) + 2 * __int128(p.padding[d]) - (__int128(p.dilation[d]) * (kernel - 1) + 1);
  TORCH_CHECK(room >= 0 && room < INT64_MAX, "Calculated output size is too small: a kernel of ",
              kernel, " with dilation ", p.dilation[d], " does not fit an input of ", size,
              " with padding ", p.padding[d]);
  return static_cast<int64_t>(room) / p.stride[d] + 1;
}

void check_params(const DeformParams& p) {
  TORCH_CHECK(p.stride[0] > 0 && p.stride[1] > 0, "stride_h: ", p.stride[0],
              " stride_w: ", p.stride[1], ", must be positive");
  TORCH_CHECK(p.padding[0] >= 0 && p.padding[1] >= 0, "pad_h: ", p.padding[0],
              " pad_w: ", p.padding[1], ", must not be negative");
  TORCH_CHECK(p.dilation[0] > 0 && p.dilation[1] > 0, "dilation_h: ", p.dilation[0],
              " dilation_w: ", p.dilation[1], ", must be positive");
  TORCH_CHECK(p.groups > 0 && p.offset_groups > 0,
              "groups and offset groups must be positive, got ", p.groups, " and ",
              p.offset_groups);
}

void check_tensor(const Tensor& t, const char* name, const Tensor& input, int64_t dims) {
  TORCH_CHECK(t.dim() == dims, "deform_conv2d: expected ", name, " to have ", dims,
              " dimensions, got ", t.sizes());
  TORCH_CHECK(t.scalar_type() == input.scalar_type(), "deform_conv2d: expected scalar type ",
              input.scalar_type(), " but found ", t.scalar_type(), " for ", name);
  TORCH_CHECK(t.device() == input.device(), "deform_conv2d: expected ", name, " on ",
              input.device(), " but found it on ", t.device());
}

Sizes check(const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
            const Tensor& bias, const DeformParams& p) {
  check_params(p);
  check_tensor(input, "input", input, 4);
  check_tensor(weight, "weight", input, 4);
  check_tensor(offset, "offset", input, 4);
  check_tensor(bias, "bias", input, 1);
  Sizes s{input.size(0),
          input.size(1),
          input.size(2),
          input.size(3),
          weight.size(0),
          weight.size(2),
          weight.size(3),
          0,
          0,
          p.groups,
          0};
  TORCH_CHECK(s.kh > 0 && s.kw > 0, "weight_h: ", s.kh, " weight_w: ", s.kw);
  TORCH_CHECK(s.c % p.groups == 0 && weight.size(1) == s.c / p.groups,
              "deform_conv2d: weight of shape ", weight.sizes(), " with ", p.groups,
              " groups does not fit an input of ", s.c, " channels");
  TORCH_CHECK(s.o % p.groups == 0, "deform_conv2d: ", s.o, " output channels cannot be split into ",
              p.groups, " groups");
  TORCH_CHECK(s.c % p.offset_groups == 0, "deform_conv2d: ", s.c,
              " input channels cannot be split ", "into ", p.offset_groups, " offset groups");
  s.per_offset = s.c / p.offset_groups;
  s.oh = places_along(s.h, s.kh, p, 0);
  s.ow = places_along(s.w, s.kw, p, 1);
  const int64_t volume[] = {p.offset_groups, 2, s.kh, s.kw};
  TORCH_CHECK(offset.size(1) == c10::checked_numel(volume),
              "offset.shape[1] is not valid: got: ", offset.size(1),
              " expected: ", c10::checked_numel(volume));
  TORCH_CHECK(offset.size(0) == s.n, "invalid batch size of offset: got: ", offset.size(0),
              " expected: ", s.n);
  TORCH_CHECK(offset.size(2) == s.oh && offset.size(3) == s.ow, "offset output dims: (",
              offset.size(2), ", ", offset.size(3), ") - computed output dims: (", s.oh, ", ", s.ow,
              ")");
  TORCH_CHECK(bias.size(0) == s.o, "deform_conv2d: expected a bias of ", s.o, " elements, got ",
              bias.sizes());
  if (p.use_mask) {
    check_tensor(mask, "mask", input, 4);
    TORCH_CHECK(mask.size(1) == p.offset_groups * s.taps(),
                "mask.shape[1] is not valid: got: ", mask.size(1),
                " expected: ", p.offset_groups * s.taps());
    TORCH_CHECK(mask.size(0) == s.n && mask.size(2) == s.oh && mask.size(3) == s.ow,
                "mask output dims: ", mask.sizes(), " - computed output dims: (", s.oh, ", ", s.ow,
                ") for a batch of ", s.n);
  }
  return s;
}

// Where one point falls: corner i is at pixel at[i], -1 outside; dy and dx are the distances from
// the upper left one.
template <class T> struct Point {
  int64_t corners[4];
  T dy, dx;
  T weight(int corner) const {
    return (corner & 2 ? dy : T(1) - dy) * (corner & 1 ? dx : T(1) - dx);
  }
  T value(const T* plane) const {
    T sum = 0;
    for (int i = 0; i < 4; ++i)
      if (corners[i] >= 0) sum += weight(i) * plane[corners[i]];
    return sum;
  }
  // The derivatives of value by the point's y and x.
  void slope(const T* plane, T& by_y, T& by_x) const {
    by_y = by_x = 0;
    for (int i = 0; i < 4; ++i) {
      if (corners[i] < 0) continue;
      const T v = plane[corners[i]];
      by_y += (i & 2 ? v : -v) * (i & 1 ? dx : T(1) - dx);
      by_x += (i & 1 ? v : -v) * (i & 2 ? dy : T(1) - dy);
    }
  }
};

template <class T> Point<T> point_at(T y, T x, int64_t h, int64_t w) {
  Point<T> p{{-1, -1, -1, -1}, 0, 0};
  if (!(y > T(-1) && y < static_cast<T>(h) && x > T(-1) && x < static_cast<T>(w))) return p;
  const T top = std::floor(y), left = std::floor(x);
  p.dy = y - top;
  p.dx = x - left;
  const int64_t i = static_cast<int64_t>(top), j = static_cast<int64_t>(left);
  for (int corner = 0; corner < 4; ++corner) {
    const int64_t a = i + (corner >> 1), b = j + (corner & 1);
    if (a >= 0 && a < h && b >= 0 && b < w) p.corners[corner] = a * w + b;
  }
  return p;
}

// One image: its points, and what reads and writes through them.
template <class T> struct Image {
  const Sizes& s;
  const DeformParams& p;
  std::vector<Point<T>> points; // [offset group][tap][place]
  const T* mask;                // the same order, or null

  void place(const T* offset) {
    const int64_t rows = p.offset_groups * s.taps();
    points.resize(static_cast<size_t>(rows * s.places()));
    parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t tap = r % s.taps(), ky = tap / s.kw, kx = tap % s.kw;
        const T *dy = offset + 2 * r * s.places(), *dx = dy + s.places();
        for (int64_t i = 0; i < s.places(); ++i) {
          const int64_t y = i / s.ow * p.stride[0] - p.padding[0] + ky * p.dilation[0];
          const int64_t x = i % s.ow * p.stride[1] - p.padding[1] + kx * p.dilation[1];
          points[r * s.places() + i] =
              point_at(static_cast<T>(y) + dy[i], static_cast<T>(x) + dx[i], s.h, s.w);
        }
      }
    });
  }
  // The first point of channel c's row for a tap.
  int64_t row(int64_t c, int64_t tap) const {
    return (c / s.per_offset * s.taps() + tap) * s.places();
  }

  void columns(const T* image, T* out) const {
    parallel_for(0, s.c * s.taps(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* plane = image + r / s.taps() * s.plane();
        const int64_t first = row(r / s.taps(), r % s.taps());
        for (int64_t i = 0; i < s.places(); ++i) {
          const T v = points[first + i].value(plane);
          out[r * s.places() + i] = mask ? v * mask[first + i] : v;
        }
      }
    });
  }

  void input_grad(const T* grad_columns, T* out) const {
    parallel_for(0, s.c, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        T* plane = out + c * s.plane();
        std::fill(plane, plane + s.plane(), T(0));
        for (int64_t tap = 0; tap < s.taps(); ++tap) {
          const int64_t first = row(c, tap);
          const T* from = grad_columns + (c * s.taps() + tap) * s.places();
          for (int64_t i = 0; i < s.places(); ++i) {
            const Point<T>& point = points[first + i];
            const T g = mask ? from[i] * mask[first + i] : from[i];
            for (int corner = 0; corner < 4; ++corner)
              if (point.corners[corner] >= 0)
                plane[point.corners[corner]] += point.weight(corner) * g;
          }
        }
      }
    });
  }

  void point_grads(const T* image, const T* grad_columns, T* grad_offset, T* grad_mask) const {
    parallel_for(0, p.offset_groups * s.taps(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t tap = r % s.taps(), first_c = r / s.taps() * s.per_offset;
        T *to_y = grad_offset + 2 * r * s.places(), *to_x = to_y + s.places();
        for (int64_t i = 0; i < s.places(); ++i) {
          const int64_t position = r * s.places() + i;
          T sum_y = 0, sum_x = 0, sum_mask = 0;
          for (int64_t c = first_c; c < first_c + s.per_offset; ++c) {
            const T g = grad_columns[(c * s.taps() + tap) * s.places() + i];
            const T* plane = image + c * s.plane();
            T by_y, by_x;
            points[position].slope(plane, by_y, by_x);
            sum_y += g * by_y;
            sum_x += g * by_x;
            if (grad_mask) sum_mask += g * points[position].value(plane);
          }
          to_y[i] = mask ? sum_y * mask[position] : sum_y;
          to_x[i] = mask ? sum_x * mask[position] : sum_x;
          if (grad_mask) grad_mask[position] = sum_mask;
        }
      }
    });
  }
};

// Image i of a batch [n, groups * rows, ...] as [groups, rows, places].
Tensor grouped(const Tensor& batch, int64_t i, const Sizes& s, int64_t channels) {
  const int64_t rows = channels / s.groups, step = s.places();
  return detail::view_of(batch, {s.groups, rows, step}, {rows * step, step, 1},
                         batch.storage_offset() + i * channels * step);
}

Tensor grouped_weight(const Tensor& weight, const Sizes& s) {
  const int64_t rows = s.o / s.groups, inner = weight.size(1) * s.taps();
  return detail::view_of(weight, {s.groups, rows, inner}, {rows * inner, inner, 1},
                         weight.storage_offset());
}

template <class T> void forward(const Tensor& input, const Tensor& weight, const Tensor& offset,
                                const Tensor& mask, const Tensor& bias, const Sizes& s,
                                const DeformParams& p, Tensor& out) {
  const Tensor x = input.contiguous(), w = grouped_weight(weight.contiguous(), s);
  const Tensor shifts = offset.contiguous(), b = bias.contiguous();
  const Tensor masks = p.use_mask ? mask.contiguous() : mask;
  const Tensor columns =
      detail::empty({s.groups, weight.size(1) * s.taps(), s.places()}, input.scalar_type());
  const int64_t points = p.offset_groups * s.taps() * s.places();
  for (int64_t n = 0; n < s.n; ++n) {
    Image<T> image{s, p, {}, p.use_mask ? masks.data_ptr<T>() + n * points : nullptr};
    {
      const BlockingRegion unlocked;
      image.place(shifts.data_ptr<T>() + n * points * 2);
      image.columns(x.data_ptr<T>() + n * s.c * s.plane(), columns.data_ptr<T>());
    }
    Tensor target = grouped(out, n, s, s.o);
    at::bmm_out(target, w, columns);
    T* to = out.data_ptr<T>() + n * s.o * s.places();
    for (int64_t o = 0; o < s.o; ++o)
      for (int64_t i = 0; i < s.places(); ++i) to[o * s.places() + i] += b.data_ptr<T>()[o];
  }
}

template <class T> DeformGrads backward(const Tensor& grad, const Tensor& input,
                                        const Tensor& weight, const Tensor& offset,
                                        const Tensor& mask, const Tensor& bias, const Sizes& s,
                                        const DeformParams& p) {
  const Tensor g = grad.contiguous(), x = input.contiguous(), shifts = offset.contiguous();
  const Tensor w = grouped_weight(weight.contiguous(), s);
  const Tensor masks = p.use_mask ? mask.contiguous() : mask;
  const auto like = [](const Tensor& t) { return at::zeros(t.sizes(), t.options()); };
  Tensor to_input = like(input), to_weight = like(weight), to_offset = like(offset);
  Tensor to_mask = like(mask);
  Tensor weight_sum = grouped_weight(to_weight, s);
  const Tensor columns =
      detail::empty({s.groups, weight.size(1) * s.taps(), s.places()}, input.scalar_type());
  const int64_t points = p.offset_groups * s.taps() * s.places();
  for (int64_t n = 0; n < s.n; ++n) {
    Image<T> image{s, p, {}, p.use_mask ? masks.data_ptr<T>() + n * points : nullptr};
    const T* pixels = x.data_ptr<T>() + n * s.c * s.plane();
    const Tensor results = grouped(g, n, s, s.o);
    const Tensor grad_columns = at::bmm(at::transpose(w, 1, 2), results).contiguous();
    {
      const BlockingRegion unlocked;
      const T* from = grad_columns.data_ptr<T>();
      image.place(shifts.data_ptr<T>() + n * points * 2);
      image.input_grad(from, to_input.data_ptr<T>() + n * s.c * s.plane());
      image.point_grads(pixels, from, to_offset.data_ptr<T>() + n * points * 2,
                        p.use_mask ? to_mask.data_ptr<T>() + n * points : nullptr);
      image.columns(pixels, columns.data_ptr<T>());
    }
    at::add_out(weight_sum, weight_sum, at::bmm(results, at::transpose(columns, 1, 2)));
  }
  Tensor to_bias = s.n * s.places() == 0 ? like(bias) : at::sum(g, {0, 2, 3});
  return {to_input, to_weight, to_offset, to_mask, to_bias};
}

Tensor cast(const Tensor& t, ScalarType dtype) {
  return at::_ops::to_dtype::call(t, dtype, false, false, std::nullopt);
}

bool is_reduced(ScalarType dtype) { return dtype == kHalf || dtype == kBFloat16; }

} // namespace

Tensor deform_conv2d_shape(const Tensor& input, const Tensor& weight, const Tensor& offset,
                           const Tensor& mask, const Tensor& bias, const DeformParams& p) {
  const Sizes s = check(input, weight, offset, mask, bias, p);
  return detail::empty({s.n, s.o, s.oh, s.ow}, input.scalar_type(), input.device());
}

Tensor deform_conv2d_cpu(const Tensor& input, const Tensor& weight, const Tensor& offset,
                         const Tensor& mask, const Tensor& bias, const DeformParams& p) {
  const ScalarType dtype = input.scalar_type();
  const Sizes s = check(input, weight, offset, mask, bias, p);
  if (is_reduced(dtype)) {
    const auto wide = [](const Tensor& t) { return cast(t, kFloat); };
    return cast(
        deform_conv2d_cpu(wide(input), wide(weight), wide(offset), wide(mask), wide(bias), p),
        dtype);
  }
  Tensor out = detail::empty({s.n, s.o, s.oh, s.ow}, dtype);
  if (out.numel() == 0) return out;
  dtype_switch<WideFloatingTypes>(dtype, "deformable_im2col", [&](auto tag) {
    using T = typename decltype(tag)::type;
    forward<T>(input, weight, offset, mask, bias, s, p, out);
  });
  return out;
}

DeformGrads deform_conv2d_backward_cpu(const Tensor& grad, const Tensor& input,
                                       const Tensor& weight, const Tensor& offset,
                                       const Tensor& mask, const Tensor& bias,
                                       const DeformParams& p) {
  const ScalarType dtype = input.scalar_type();
  const Sizes s = check(input, weight, offset, mask, bias, p);
  check_tensor(grad, "grad", input, 4);
  const int64_t expected[] = {s.n, s.o, s.oh, s.ow};
  TORCH_CHECK(grad.sizes().equals(expected), "_deform_conv2d_backward: expected grad of shape ",
              IntArrayRef(expected), ", got ", grad.sizes());
  if (is_reduced(dtype)) {
    const auto wide = [](const Tensor& t) { return cast(t, kFloat); };
    const auto [a, b, c, d, e] = deform_conv2d_backward_cpu(
        wide(grad), wide(input), wide(weight), wide(offset), wide(mask), wide(bias), p);
    return {cast(a, dtype), cast(b, dtype), cast(c, dtype), cast(d, dtype), cast(e, dtype)};
  }
  DeformGrads out;
  dtype_switch<WideFloatingTypes>(dtype, "deformable_col2im", [&](auto tag) {
    using T = typename decltype(tag)::type;
    out = backward<T>(grad, input, weight, offset, mask, bias, s, p);
  });
  return out;
}

} // namespace at::native::vision
