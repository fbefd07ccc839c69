// The operators of grid sampling: out[n, c, p] is input[n, c] at the place grid[n, p]. Points are
// worked on in blocks whose taps are found once for all channels; the gradient for the input gives
// each task some channels of one image, so that no two write to the same place.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/interpolate/GridSample.h>
#include <ATen/native/interpolate/Native.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>
#include <ATen/ops/grid_sampler_3d.h>
#include <ATen/ops/grid_sampler_3d_backward.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace at::native {
namespace {
using namespace interpolate;

constexpr int64_t kBlock = 256;   // points per block
constexpr int64_t kChannels = 16; // channels per task of the gradient for the input

template <class T> using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

GridGeometry geometry(const Tensor& input, int64_t mode, int64_t padding, bool align_corners) {
  GridGeometry g;
  g.dims = static_cast<int>(input.dim()) - 2;
  for (int i = 0; i < g.dims; ++i) g.size[3 - g.dims + i] = input.size(2 + i);
  g.mode = static_cast<GridMode>(mode);
  g.padding = static_cast<GridPadding>(padding);
  g.align_corners = align_corners;
  return g;
}

struct Counts {
  int64_t batch, channels, points, plane;
};
Counts counts(const Tensor& input, const Tensor& grid) {
  Counts c{input.size(0), input.size(1), 1, 1};
  for (int64_t d = 1; d < grid.dim() - 1; ++d) c.points *= grid.size(d);
  for (int64_t d = 2; d < input.dim(); ++d) c.plane *= input.size(d);
  return c;
}

// The taps of a block of points of one image, packed: what all channels read again must stay in the
// first-level cache. Point p has count[p] taps from p * width on.
template <class A> struct BlockTaps {
  int width;
  std::vector<int> count;
  std::vector<int64_t> index;
  std::vector<A> weight, slope;

  BlockTaps(const GridGeometry& g, bool slopes)
      : width(g.mode == GridMode::Nearest ? 1
              : g.mode == GridMode::Cubic ? 16
              : g.dims == 2               ? 4
                                          : 8),
        count(kBlock), index(kBlock * width), weight(kBlock * width),
        slope(slopes ? kBlock * width * 3 : 0) {}

  template <class T> void find(const GridGeometry& g, const T* grid, int64_t begin, int64_t end) {
    GridTaps<A> taps;
    for (int64_t p = begin; p < end; ++p) {
      A point[3];
      for (int i = 0; i < g.dims; ++i) point[i] = static_cast<A>(grid[p * g.dims + i]);
      grid_taps(g, point, !slope.empty(), taps);
      const int64_t at = (p - begin) * width;
      count[p - begin] = taps.count;
      std::copy(taps.index, taps.index + taps.count, index.data() + at);
      std::copy(taps.weight, taps.weight + taps.count, weight.data() + at);
      if (slope.empty()) continue;
      for (int i = 0; i < taps.count; ++i)
        std::copy(taps.slope[i], taps.slope[i] + 3, slope.data() + 3 * (at + i));
    }
  }
};

// f(image, first point, last point) over blocks of points, in parallel.
template <class F> void for_blocks(const Counts& c, int64_t work, const F& f) {
  const int64_t blocks = (c.points + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(work * kBlock, 1));
  parallel_for(0, c.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kBlock;
      f(i / blocks, first, std::min(first + kBlock, c.points));
      check_interrupt();
    }
  });
}

template <class T>
void sample(const GridGeometry& g, const Counts& c, const T* input, const T* grid, T* out) {
  for_blocks(c, c.channels, [&](int64_t n, int64_t begin, int64_t end) {
    BlockTaps<T> taps(g, false); // in T: see GridSample.cpp
    taps.find(g, grid + n * c.points * g.dims, begin, end);
    for (int64_t k = 0; k < c.channels; ++k) {
      const T* plane = input + (n * c.channels + k) * c.plane;
      T* to = out + (n * c.channels + k) * c.points + begin;
      const int64_t* index = taps.index.data();
      const T* weight = taps.weight.data();
      for (int64_t p = 0; p < end - begin; ++p, index += taps.width, weight += taps.width) {
        if (taps.width == 4 && taps.count[p] == 4) {
          to[p] = weight[0] * plane[index[0]] + weight[1] * plane[index[1]] +
                  weight[2] * plane[index[2]] + weight[3] * plane[index[3]];
          continue;
        }
        T sum = T(0.f);
        for (int i = 0; i < taps.count[p]; ++i) sum += weight[i] * plane[index[i]];
        to[p] = sum;
      }
    }
  });
}

template <class T>
void input_gradient(const GridGeometry& g, const Counts& c, const T* grad, const T* grid, T* out) {
  using A = Compute<T>;
  const int64_t groups = (c.channels + kChannels - 1) / kChannels;
  parallel_for(0, c.batch * groups, 1, [&](int64_t begin, int64_t end) {
    BlockTaps<A> taps(g, false);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / groups, from = task % groups * kChannels;
      const int64_t to = std::min(from + kChannels, c.channels);
      std::vector<A> sums(static_cast<size_t>((to - from) * c.plane), A(0));
      for (int64_t first = 0; first < c.points; first += kBlock) {
        check_interrupt();
        const int64_t last = std::min(first + kBlock, c.points);
        taps.find(g, grid + n * c.points * g.dims, first, last);
        for (int64_t k = from; k < to; ++k) {
          A* plane = sums.data() + (k - from) * c.plane;
          const T* gradient = grad + (n * c.channels + k) * c.points + first;
          const int64_t* index = taps.index.data();
          const A* weight = taps.weight.data();
          for (int64_t p = 0; p < last - first; ++p, index += taps.width, weight += taps.width) {
            const A value = static_cast<A>(gradient[p]);
            if (taps.width == 4 && taps.count[p] == 4) {
              for (int i = 0; i < 4; ++i) plane[index[i]] += weight[i] * value;
              continue;
            }
            for (int i = 0; i < taps.count[p]; ++i) plane[index[i]] += weight[i] * value;
          }
        }
      }
      std::transform(sums.begin(), sums.end(), out + (n * c.channels + from) * c.plane,
                     [](A x) { return static_cast<T>(x); });
    }
  });
}

// D slopes for each of `count` taps of one point, summed with the elements they belong to.
template <int D, class T, class A> C10_ALWAYS_INLINE void
add_slopes(const T* plane, const int64_t* index, const A* slope, int count, A value, A* sum) {
  A total[D] = {};
  for (int i = 0; i < count; ++i) {
    const A element = static_cast<A>(plane[index[i]]);
    for (int d = 0; d < D; ++d) total[d] += slope[3 * i + d] * element;
  }
  for (int d = 0; d < D; ++d) sum[d] += total[d] * value;
}

template <int D, class T> void grid_gradient(const GridGeometry& g, const Counts& c, const T* grad,
                                             const T* input, const T* grid, T* out) {
  using A = Compute<T>;
  for_blocks(c, c.channels, [&](int64_t n, int64_t begin, int64_t end) {
    BlockTaps<A> taps(g, true);
    std::vector<A> sums(D * kBlock, A(0));
    taps.find(g, grid + n * c.points * D, begin, end);
    for (int64_t k = 0; k < c.channels; ++k) {
      const T* plane = input + (n * c.channels + k) * c.plane;
      const T* gradient = grad + (n * c.channels + k) * c.points + begin;
      for (int64_t p = 0; p < end - begin; ++p) {
        const int64_t* index = taps.index.data() + p * taps.width;
        const A* slope = taps.slope.data() + 3 * p * taps.width;
        const A value = static_cast<A>(gradient[p]);
        if (taps.width == 4 && taps.count[p] == 4) {
          add_slopes<D>(plane, index, slope, 4, value, sums.data() + D * p);
        } else {
          add_slopes<D>(plane, index, slope, taps.count[p], value, sums.data() + D * p);
        }
      }
    }
    for (int64_t i = 0; i < D * (end - begin); ++i)
      out[(n * c.points + begin) * D + i] = static_cast<T>(sums[i]);
  });
}

void run_forward(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                 bool align_corners, const Tensor& out, const char* name) {
  dtype_switch<FloatingTypes>(input.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out.numel() == 0) return;
    const Tensor x = input.contiguous(), places = grid.contiguous();
    const Tensor target = out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type());
    {
      const BlockingRegion unlocked;
      sample<T>(geometry(x, mode, padding, align_corners), counts(x, places),
                static_cast<const T*>(x.data_ptr()), static_cast<const T*>(places.data_ptr()),
                static_cast<T*>(target.data_ptr()));
    }
    if (!target.is_same(out)) out.copy_(target);
  });
}

void run_backward(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode,
                  int64_t padding, bool align_corners, std::array<bool, 2> mask,
                  const Tensor& input_grad, const Tensor& grid_grad, const char* name) {
  dtype_switch<FloatingTypes>(input.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor x = input.contiguous(), places = grid.contiguous(), g = grad.contiguous();
    const Tensor to_input =
        input_grad.is_contiguous() ? input_grad : detail::empty(x.sizes(), x.scalar_type());
    const Tensor to_grid =
        grid_grad.is_contiguous() ? grid_grad : detail::empty(places.sizes(), places.scalar_type());
    const GridGeometry shape = geometry(x, mode, padding, align_corners);
    const Counts c = counts(x, places);
    const T *xs = static_cast<const T*>(x.data_ptr()), *gs = static_cast<const T*>(g.data_ptr()),
            *ps = static_cast<const T*>(places.data_ptr());
    {
      const BlockingRegion unlocked;
      T *dx = static_cast<T*>(to_input.data_ptr()), *dp = static_cast<T*>(to_grid.data_ptr());
      // A gradient that is not wanted is zero.
      if (!mask[0]) {
        parallel_zero(dx, to_input.nbytes());
      } else if (to_input.numel() > 0) {
        input_gradient<T>(shape, c, gs, ps, dx);
      }
      if (!mask[1]) {
        parallel_zero(dp, to_grid.nbytes());
      } else if (to_grid.numel() > 0) {
        (shape.dims == 2 ? grid_gradient<2, T> : grid_gradient<3, T>)(shape, c, gs, xs, ps, dp);
      }
    }
    if (!to_input.is_same(input_grad)) input_grad.copy_(to_input);
    if (!to_grid.is_same(grid_grad)) grid_grad.copy_(to_grid);
  });
}

} // namespace

void grid_sampler_2d_cpu(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                         bool align_corners, const Tensor& out) {
  run_forward(input, grid, mode, padding, align_corners, out, "grid_sampler_2d_cpu_kernel_impl");
}
void grid_sampler_3d_cpu(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                         bool align_corners, const Tensor& out) {
  run_forward(input, grid, mode, padding, align_corners, out, "grid_sampler3d_cpu");
}
void grid_sampler_2d_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                  int64_t mode, int64_t padding, bool align_corners,
                                  std::array<bool, 2> mask, const Tensor& input_grad,
                                  const Tensor& grid_grad) {
  run_backward(grad, input, grid, mode, padding, align_corners, mask, input_grad, grid_grad,
               "grid_sampler_2d_backward_cpu_kernel_impl");
}
void grid_sampler_3d_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                  int64_t mode, int64_t padding, bool align_corners,
                                  std::array<bool, 2> mask, const Tensor& input_grad,
                                  const Tensor& grid_grad) {
  run_backward(grad, input, grid, mode, padding, align_corners, mask, input_grad, grid_grad,
               "grid_sampler_3d_backward_cpu");
}

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align_corners) {
  TORCH_CHECK(input.dim() != 5 || mode != static_cast<int64_t>(GridMode::Cubic),
              "grid_sampler(): bicubic interpolation only supports 4D input");
  if (input.dim() == 5) return at::grid_sampler_3d(input, grid, mode, padding, align_corners);
  return at::grid_sampler_2d(input, grid, mode, padding, align_corners);
}
Tensor _grid_sampler_2d_cpu_fallback(const Tensor& input, const Tensor& grid, int64_t mode,
                                     int64_t padding, bool align_corners) {
  return at::grid_sampler_2d(input, grid, mode, padding, align_corners);
}
std::tuple<Tensor, Tensor>
_grid_sampler_2d_cpu_fallback_backward(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                       int64_t mode, int64_t padding, bool align_corners) {
  return at::grid_sampler_2d_backward(grad, input, grid, mode, padding, align_corners,
                                      {true, true});
}

} // namespace at::native

namespace at::meta {
namespace {

void check(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, int64_t dims) {
  const IntArrayRef image = input.sizes(), points = grid.sizes();
  const int64_t spatial = input.dim() - 2;
  TORCH_CHECK(input.device() == grid.device(),
              "grid_sampler(): expected input and grid to be on same device, but input is on ",
              input.device(), " and grid is on ", grid.device());
  TORCH_CHECK(spatial > 0 && points.size() >= 2 && image[0] == points[0],
              "grid_sampler(): expected grid and input to have same batch size, but got input with "
              "sizes ",
              image, " and grid with sizes ", points);
  TORCH_CHECK(grid.size(-1) == spatial, "grid_sampler(): expected grid to have size ", spatial,
              " in last dimension, but got grid with sizes ", points);
  for (int64_t d = 2; d < input.dim(); ++d)
    TORCH_CHECK(input.size(d) > 0,
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                "has sizes ",
                input.sizes(), " with dimension ", d, " being empty");
  TORCH_CHECK(input.dim() == dims + 2 && grid.dim() == input.dim(), "grid_sampler(): expected ",
              dims + 2,
              "D input and grid with same number of dimensions, but got input with sizes ",
              input.sizes(), " and grid with sizes ", grid.sizes());
  TORCH_CHECK(grid.scalar_type() == input.scalar_type(), "expected scalar type ",
              input.scalar_type(), " but found ", grid.scalar_type());
  TORCH_CHECK(mode >= 0 && mode <= (dims == 2 ? 2 : 1) && padding >= 0 && padding <= 2,
              "grid_sampler(): unknown interpolation mode ", mode, " or padding mode ", padding);
}

void shape(OutputBuilder& out, const Tensor& input, const Tensor& grid, int64_t mode,
           int64_t padding, int64_t dims) {
  check(input, grid, mode, padding, dims);
  DimVector sizes{input.size(0), input.size(1)};
  for (int64_t d = 0; d < dims; ++d) sizes.push_back(grid.size(1 + d));
  out.set(0, sizes, input.scalar_type());
}

void backward_shape(OutputBuilder& out, const Tensor& grad, const Tensor& input, const Tensor& grid,
                    int64_t mode, int64_t padding, int64_t dims) {
  check(input, grid, mode, padding, dims);
  DimVector sizes{input.size(0), input.size(1)};
  for (int64_t d = 0; d < dims; ++d) sizes.push_back(grid.size(1 + d));
  TORCH_CHECK(grad.sizes().equals(sizes) && grad.scalar_type() == input.scalar_type(),
              "grid_sampler_backward: expected grad_output of size ", IntArrayRef(sizes),
              " and dtype ", input.scalar_type(), ", but got ", grad.sizes(), " and ",
              grad.scalar_type());
  out.set(0, input.sizes(), input.scalar_type());
  out.set(1, grid.sizes(), grid.scalar_type());
}

} // namespace

void meta_grid_sampler_2d(OutputBuilder& out, const Tensor& input, const Tensor& grid, int64_t mode,
                          int64_t padding, bool) {
  shape(out, input, grid, mode, padding, 2);
}
void meta_grid_sampler_3d(OutputBuilder& out, const Tensor& input, const Tensor& grid, int64_t mode,
                          int64_t padding, bool) {
  shape(out, input, grid, mode, padding, 3);
}
void meta_grid_sampler_2d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& input,
                                   const Tensor& grid, int64_t mode, int64_t padding, bool,
                                   std::array<bool, 2>) {
  backward_shape(out, grad, input, grid, mode, padding, 2);
}
void meta_grid_sampler_3d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& input,
                                   const Tensor& grid, int64_t mode, int64_t padding, bool,
                                   std::array<bool, 2>) {
  backward_shape(out, grad, input, grid, mode, padding, 3);
}

} // namespace at::meta
