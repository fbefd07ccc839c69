// The operators of grid sampling: out[n, c, p] is input[n, c] at the place grid[n, p]. Points are
// worked on in blocks whose taps are found once for all channels; the gradient for the input gives
// each task some channels of one image, so that no two write to the same place.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/interpolate/GridRows.h>
#include <ATen/native/interpolate/Native.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>
#include <ATen/ops/grid_sampler_3d.h>
#include <ATen/ops/grid_sampler_3d_backward.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/NumericLimits.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace at::native {
namespace {
using namespace interpolate;

constexpr int64_t kChannels = 16; // channels per task of the gradient for the input

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
  int64_t blocks() const { return (points + kGridBlock - 1) / kGridBlock; }
};
Counts counts(const Tensor& input, const Tensor& grid) {
  Counts c{input.size(0), input.size(1), 1, 1};
  for (int64_t d = 1; d < grid.dim() - 1; ++d) c.points *= grid.size(d);
  for (int64_t d = 2; d < input.dim(); ++d) c.plane *= input.size(d);
  return c;
}

template <class A> const GridLoops<A>& grid_loops() {
  static const GridLoops<A> loops = [] {
    if constexpr (std::is_same_v<A, float>)
      return CRESSET_BY_ISA(, float_grid)();
    else
      return CRESSET_BY_ISA(, double_grid)();
  }();
  return loops;
}

// f(tag of the type to compute in): float counts elements in 32 bits, so a plane of more takes
// double.
template <class T, class F> void with_computed(const Counts& c, const F& f) {
  if (std::is_same_v<T, double> || c.plane > c10::numeric_limits<int>::max())
    f(c10::TypeTag<double>());
  else
    f(c10::TypeTag<float>());
}

// The taps of n points whose coordinates begin at `grid`.
template <class T, class A>
void find_taps(const GridGeometry& g, const T* grid, int64_t n, GridBlock<A>& block) {
  const int64_t filled = std::min(kGridBlock, (n + 15) / 16 * 16); // whole registers
  for (int d = 0; d < g.dims; ++d) {
    A* to = block.coordinates.get() + d * kGridBlock;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<A>(grid[i * g.dims + d]);
    std::fill(to + n, to + filled, A(0));
  }
  grid_loops<A>().find(g, n, block);
}

// f(begin, end) over numbers of blocks of points of all images, in parallel.
template <class F> void for_blocks(const Counts& c, const F& f) {
  const int64_t work = std::max<int64_t>(c.channels * kGridBlock, 1);
  parallel_for(0, c.batch * c.blocks(), std::max<int64_t>(1, 16384 / work), f);
}

template <class T, class A>
void sample(const GridGeometry& g, const Counts& c, const T* input, const T* grid, T* out) {
  for_blocks(c, [&](int64_t begin, int64_t end) {
    GridBlock<A> block(g, false);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / c.blocks(), first = i % c.blocks() * kGridBlock;
      const int64_t n = std::min(kGridBlock, c.points - first);
      find_taps(g, grid + (image * c.points + first) * g.dims, n, block);
      for (int64_t k = image * c.channels; k < (image + 1) * c.channels; ++k) {
        const T* plane = input + k * c.plane;
        T* to = out + k * c.points + first;
        if constexpr (std::is_same_v<T, A>) {
          grid_loops<A>().sample(block, plane, to, n);
        } else {
          for (int64_t p = 0; p < n; ++p) {
            A sum = 0;
            block.for_taps(p, [&](auto j, A weight) { sum += weight * static_cast<A>(plane[j]); });
            to[p] = static_cast<T>(sum);
          }
        }
      }
      check_interrupt();
    }
  });
}

// In a half type every step rounds to it: see GridSample.cpp.
template <class T> void sample_rounding(const GridGeometry& g, const Counts& c, const T* input,
                                        const T* grid, T* out) {
  for_blocks(c, [&](int64_t begin, int64_t end) {
    std::vector<GridTaps<T>> taps(static_cast<size_t>(kGridBlock));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / c.blocks(), first = i % c.blocks() * kGridBlock;
      const int64_t n = std::min(kGridBlock, c.points - first);
      for (int64_t p = 0; p < n; ++p)
        grid_taps(g, grid + (image * c.points + first + p) * g.dims, taps[p]);
      for (int64_t k = image * c.channels; k < (image + 1) * c.channels; ++k) {
        const T* plane = input + k * c.plane;
        for (int64_t p = 0; p < n; ++p) {
          T sum = T(0.f);
          for (int t = 0; t < taps[p].count; ++t)
            sum += taps[p].weight[t] * plane[taps[p].index[t]];
          out[k * c.points + first + p] = sum;
        }
      }
      check_interrupt();
    }
  });
}

template <class T, class A>
void input_gradient(const GridGeometry& g, const Counts& c, const T* grad, const T* grid, T* out) {
  const int64_t groups = (c.channels + kChannels - 1) / kChannels;
  parallel_for(0, c.batch * groups, 1, [&](int64_t begin, int64_t end) {
    GridBlock<A> block(g, false);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / groups, from = task % groups * kChannels;
      const int64_t to = std::min(from + kChannels, c.channels);
      std::vector<A> sums(static_cast<size_t>((to - from) * c.plane), A(0));
      for (int64_t first = 0; first < c.points; first += kGridBlock) {
        check_interrupt();
        const int64_t count = std::min(kGridBlock, c.points - first);
        find_taps(g, grid + (n * c.points + first) * g.dims, count, block);
        for (int64_t k = from; k < to; ++k) {
          A* plane = sums.data() + (k - from) * c.plane;
          const T* gradient = grad + (n * c.channels + k) * c.points + first;
          for (int64_t p = 0; p < count; ++p) {
            const A value = static_cast<A>(gradient[p]);
            block.for_taps(p, [&](auto j, A weight) { plane[j] += weight * value; });
          }
        }
      }
      std::transform(sums.begin(), sums.end(), out + (n * c.channels + from) * c.plane,
                     [](A x) { return static_cast<T>(x); });
    }
  });
}

// sums[d][p] += grad[p] * the derivative of the sample by coordinate d.
template <class T, class A> void add_slopes(const GridBlock<A>& block, int dims, const T* plane,
                                            const T* grad, int64_t n, A* const* sums) {
  A values[kGridBlock];
  for (int64_t p = 0; p < n; ++p) values[p] = static_cast<A>(grad[p]);
  std::fill(values + n, values + kGridBlock, A(0));
  if constexpr (std::is_same_v<T, A>) {
    grid_loops<A>().slopes(block, dims, plane, values, n, sums);
  } else {
    for (int64_t p = 0; p < n; ++p) {
      for (int d = 0; d < dims; ++d) {
        A total = 0;
        block.for_taps(p, block.slope[d],
                       [&](auto j, A slope) { total += slope * static_cast<A>(plane[j]); });
        sums[d][p] += total * values[p];
      }
    }
  }
}

template <class T, class A> void grid_gradient(const GridGeometry& g, const Counts& c,
                                               const T* grad, const T* input, const T* grid,
                                               T* out) {
  for_blocks(c, [&](int64_t begin, int64_t end) {
    GridBlock<A> block(g, true);
    std::vector<A> store(3 * kGridBlock);
    A* const sums[3] = {store.data(), store.data() + kGridBlock, store.data() + 2 * kGridBlock};
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / c.blocks(), first = i % c.blocks() * kGridBlock;
      const int64_t n = std::min(kGridBlock, c.points - first);
      const int64_t spot = (image * c.points + first) * g.dims;
      find_taps(g, grid + spot, n, block);
      std::fill(store.begin(), store.end(), A(0));
      for (int64_t k = image * c.channels; k < (image + 1) * c.channels; ++k)
        add_slopes(block, g.dims, input + k * c.plane, grad + k * c.points + first, n, sums);
      for (int64_t p = 0; p < n; ++p)
        for (int d = 0; d < g.dims; ++d) out[spot + p * g.dims + d] = static_cast<T>(sums[d][p]);
      check_interrupt();
    }
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
      const GridGeometry g = geometry(x, mode, padding, align_corners);
      const Counts c = counts(x, places);
      const T *from = static_cast<const T*>(x.data_ptr()),
              *points = static_cast<const T*>(places.data_ptr());
      T* to = static_cast<T*>(target.data_ptr());
      if constexpr (sizeof(T) == sizeof(c10::Half))
        sample_rounding<T>(g, c, from, points, to);
      else
        with_computed<T>(c, [&](auto computed) {
          sample<T, typename decltype(computed)::type>(g, c, from, points, to);
        });
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
      if (!mask[0]) parallel_zero(dx, to_input.nbytes());
      if (!mask[1]) parallel_zero(dp, to_grid.nbytes());
      with_computed<T>(c, [&](auto computed) {
        using A = typename decltype(computed)::type;
        if (mask[0] && to_input.numel() > 0) input_gradient<T, A>(shape, c, gs, ps, dx);
        if (mask[1] && to_grid.numel() > 0) grid_gradient<T, A>(shape, c, gs, xs, ps, dp);
      });
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
