// The loops of resizing, output row by output row. A row is first a weighted sum of input rows,
// which runs over contiguous memory, then its elements are picked along the row; the gradient does
// the same in the opposite order, plane by plane, so that it needs no atomics. In channels-last
// data an element is the vector of all channels, and the same loops move `unit` values at a time.
#include <ATen/native/interpolate/Upsample.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/interpolate/Rows.h>
#include <ATen/parallel/Stretches.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

namespace at::native::interpolate {
namespace {

template <class T> using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

bool is_nearest(Mode mode) { return mode == Mode::Nearest || mode == Mode::NearestExact; }

template <class A> struct Axes {
  Axis<A> d, h, w;
  int64_t planes = 0, unit = 1;
  int64_t in_plane() const { return d.in * h.in * w.in * unit; }
  int64_t out_plane() const { return d.whole * h.whole * w.whole * unit; }
  int64_t rows() const { return planes * d.out * h.out; }
};

template <class A> Axis<A> made(const Specs& specs, int i, int64_t first, int64_t count) {
  Axis<A> result = make_axis<A>(specs.axis[i], first, count);
  if (i < 3 - specs.dims) {
    result.weight = RawTable<A>(1);
    result.weight[0] = A(1);
  }
  return result;
}

template <class A> Axes<A> whole_axes(const Specs& specs) {
  const auto axis = [&](int i) { return made<A>(specs, i, 0, specs.axis[i].out); };
  return {axis(0), axis(1), axis(2), specs.planes};
}

// f(axes) for parts of the output whose tables are of moderate size. `adapt` gets each axis that is
// made.
template <class A, class Adapt, class F>
void for_parts(const Specs& specs, int64_t unit, const Adapt& adapt, const F& f) {
  constexpr int64_t kPart = int64_t(1) << 20;
  const int64_t most[3] = {kPart, kPart, std::max<int64_t>(1, kPart / unit)};
  const auto axis = [&](int i, int64_t first) {
    Axis<A> part = made<A>(specs, i, first, std::min(most[i], specs.axis[i].out - first));
    adapt(part);
    return part;
  };
  Axes<A> axes;
  axes.planes = specs.planes;
  axes.unit = unit;
  for (int64_t d = 0; d < specs.axis[0].out; d += most[0]) {
    axes.d = axis(0, d);
    for (int64_t h = 0; h < specs.axis[1].out; h += most[1]) {
      axes.h = axis(1, h);
      for (int64_t w = 0; w < specs.axis[2].out; w += most[2]) {
        axes.w = axis(2, w);
        f(static_cast<const Axes<A>&>(axes));
        check_interrupt();
      }
    }
  }
}

int64_t grain_of(int64_t plane) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(plane, 1));
}

// f(input plane, d, h, output row) for rows begin .. end of the part.
template <class T, class A, class F>
void for_rows(const Axes<A>& axes, const T* in, T* out, int64_t begin, int64_t end, const F& f) {
  const int64_t width = axes.w.whole * axes.unit;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t h = row % axes.h.out, d = row / axes.h.out % axes.d.out;
    const int64_t plane = row / axes.h.out / axes.d.out;
    const int64_t to = (plane * axes.d.whole + axes.d.first + d) * axes.h.whole + axes.h.first + h;
    f(in + plane * axes.in_plane(), d, h, out + to * width + axes.w.first * axes.unit);
  }
}

// ---- nearest: elements are moved --------------------------------------------------------------

template <class T, class A> void nearest_rows(const Axes<A>& axes, const T* in, T* out) {
  const int64_t width = axes.w.out, unit = axes.unit;
  const int32_t* column = axes.w.index.data();
  parallel_for(0, axes.rows(), grain_of(width * unit), [&](int64_t begin, int64_t end) {
    const T* before = nullptr;
    for_rows(axes, in, out, begin, end, [&](const T* plane, int64_t d, int64_t h, T* to) {
      const int64_t z = axes.d.low + axes.d.index[d], y = axes.h.low + axes.h.index[h];
      const T* row = plane + ((z * axes.h.in + y) * axes.w.in + axes.w.low) * unit;
      if (row == before && h > 0) { // enlarging repeats rows
        std::memcpy(to, to - axes.w.whole * unit, width * unit * sizeof(T));
      } else if (axes.w.identity) {
        std::memcpy(to, row, width * unit * sizeof(T));
      } else if (unit == 1) {
        for (int64_t w = 0; w < width; ++w) to[w] = row[column[w]];
      } else {
        for (int64_t w = 0; w < width; ++w)
          std::memcpy(to + w * unit, row + column[w] * unit, unit * sizeof(T));
      }
      before = row;
    });
  });
}

// ---- sums over taps ---------------------------------------------------------------------------

#define FAST __attribute__((optimize("O3")))

template <class A> const RowLoops<A>& rows() {
  static const RowLoops<A> chosen = [] {
    constexpr bool single = std::is_same_v<A, float>;
    if constexpr (single)
      return CRESSET_BY_ISA(, float_rows)();
    else
      return CRESSET_BY_ISA(, double_rows)();
  }();
  return chosen;
}

template <class T, class A>
FAST void add_row(A* __restrict to, const T* __restrict from, A weight, int64_t n, bool first) {
  if constexpr (std::is_same_v<T, A>) {
    rows<A>().add(to, from, weight, n, first);
  } else if (first) {
    for (int64_t i = 0; i < n; ++i) to[i] = weight * static_cast<A>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] += weight * static_cast<A>(from[i]);
  }
}

// to[o] = sum over taps of weight * row[index]
template <class A> FAST void pick(const Axis<A>& axis, const A* __restrict row, A* __restrict to) {
  const int64_t n = axis.out;
  const int32_t* index = axis.index.data();
  const A* weight = axis.weight.data();
  if (axis.taps == 2) {
    for (int64_t o = 0; o < n; ++o)
      to[o] = weight[o] * row[index[o]] + weight[n + o] * row[index[n + o]];
    return;
  }
  if (axis.taps == 4) {
    for (int64_t o = 0; o < n; ++o)
      to[o] =
          (weight[o] * row[index[o]] + weight[n + o] * row[index[n + o]]) +
          (weight[2 * n + o] * row[index[2 * n + o]] + weight[3 * n + o] * row[index[3 * n + o]]);
    return;
  }
  for (int64_t o = 0; o < n; ++o) {
    A sum = weight[o] * row[index[o]];
    for (int t = 1; t < axis.taps; ++t) sum += weight[t * n + o] * row[index[t * n + o]];
    to[o] = sum;
  }
}
// The same for elements of `unit` values.
template <class A> void pick_units(const Axis<A>& axis, int64_t unit, const A* row, A* to) {
  const RowLoops<A>& loop = rows<A>();
  const int64_t n = axis.out;
  const int32_t* index = axis.index.data();
  const A* weight = axis.weight.data();
  for (int64_t o = 0; o < n; ++o, to += unit) {
    if (axis.taps == 2) {
      loop.two(to, row + index[o] * unit, row + index[n + o] * unit, weight[o], weight[n + o],
               unit);
      continue;
    }
    for (int t = 0; t < axis.taps; ++t)
      loop.add(to, row + index[t * n + o] * unit, weight[t * n + o], unit, t == 0);
  }
}

// The weighted sum of input rows for output row (d, h), from element axes.w.low on.
template <class T, class A>
const A* sum_rows(const Axes<A>& axes, const T* in, int64_t d, int64_t h, A* room) {
  const int64_t width = axes.w.span * axes.unit;
  const int dt = axes.d.identity ? 1 : axes.d.taps, ht = axes.h.identity ? 1 : axes.h.taps;
  const auto row = [&](int i, int j) {
    const int64_t z =
        axes.d.identity ? axes.d.first + d : axes.d.low + axes.d.index[i * axes.d.out + d];
    const int64_t y =
        axes.h.identity ? axes.h.first + h : axes.h.low + axes.h.index[j * axes.h.out + h];
    return in + ((z * axes.h.in + y) * axes.w.in + axes.w.low) * axes.unit;
  };
  if constexpr (std::is_same_v<T, A>) {
    if (dt == 1 && ht == 1) return row(0, 0);
    if (dt == 1 && ht == 2) {
      rows<A>().two(room, row(0, 0), row(0, 1), axes.h.weight[h], axes.h.weight[axes.h.out + h],
                    width);
      return room;
    }
  }
  bool first = true;
  for (int i = 0; i < dt; ++i) {
    const A a = axes.d.identity ? A(1) : axes.d.weight[i * axes.d.out + d];
    for (int j = 0; j < ht; ++j) {
      const A b = axes.h.identity ? A(1) : axes.h.weight[j * axes.h.out + h];
      if (a * b == 0 && !first) continue;
      add_row<T, A>(room, row(i, j), a * b, width, first);
      first = false;
    }
  }
  return room;
}

template <class T, class A> void weighted_rows(const Axes<A>& axes, const T* in, T* out) {
  const int64_t width = axes.w.out * axes.unit;
  parallel_for(0, axes.rows(), grain_of(width), [&](int64_t begin, int64_t end) {
    std::vector<A> room(static_cast<size_t>(axes.w.span * axes.unit));
    std::vector<A> line(std::is_same_v<T, A> ? 0 : static_cast<size_t>(width));
    for_rows(axes, in, out, begin, end, [&](const T* plane, int64_t d, int64_t h, T* to) {
      const A* row = sum_rows<T, A>(axes, plane, d, h, room.data());
      A* target;
      if constexpr (std::is_same_v<T, A>) {
        target = to;
      } else {
        target = line.data();
      }
      if (axes.w.identity) {
        std::copy(row, row + width, target);
      } else if (axes.unit == 1) {
        pick(axes.w, row, target);
      } else {
        pick_units(axes.w, axes.unit, row, target);
      }
      if constexpr (!std::is_same_v<T, A>)
        for (int64_t w = 0; w < width; ++w) to[w] = static_cast<T>(target[w]);
    });
  });
}

// ---- bytes ------------------------------------------------------------------------------------

// Weights as integers of `shift` binary digits after the point, as many as 16 bits hold.
struct Fixed {
  int shift = 0;
  std::vector<int32_t> weight;
};
Fixed fixed_point(const Axis<double>& axis) {
  // Taps that the edge has brought to the same element count as one.
  std::vector<double> merged(axis.weight.begin(), axis.weight.end());
  serial_for(0, axis.out, 4 * axis.taps, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int t = axis.taps - 1; t > 0; --t) {
        const int64_t here = t * axis.out + o, before = here - axis.out;
        if (axis.index[here] != axis.index[before]) continue;
        merged[before] += merged[here];
        merged[here] = 0;
      }
    }
  });
  const int64_t n = static_cast<int64_t>(merged.size());
  double most = 0;
  serial_for(0, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) most = std::max(most, std::abs(merged[i]));
  });
  Fixed f;
  while (f.shift < 21 && std::floor(0.5 + most * static_cast<double>(2 << f.shift)) < 32768)
    ++f.shift;
  const double one = static_cast<double>(1 << f.shift);
  f.weight.resize(merged.size());
  parallel_for(0, n, 32768, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double w = merged[i];
      f.weight[i] = static_cast<int32_t>(w < 0 ? w * one - 0.5 : w * one + 0.5);
    }
  });
  return f;
}
uint8_t byte(int64_t sum, int shift) {
  const int64_t x = (sum + (shift > 0 ? int64_t(1) << (shift - 1) : 0)) >> shift;
  return static_cast<uint8_t>(std::clamp<int64_t>(x, 0, 255));
}

// Row `from` along the width.
void byte_row(const Axis<double>& axis, const Fixed& across, const uint8_t* from, uint8_t* to) {
  serial_for(0, axis.out, 4 * axis.taps, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      int64_t sum = 0;
      for (int t = 0; t < axis.taps; ++t)
        sum += int64_t(across.weight[t * axis.out + w]) *
               from[axis.low + axis.index[t * axis.out + w]];
      to[w] = axis.identity ? from[w] : byte(sum, across.shift);
    }
  });
}

// Bytes are resized along the width, rounded, then along the height, which is how image libraries
// do it.
void byte_planes(const Axes<double>& axes, const uint8_t* in, uint8_t* out) {
  const Fixed across = fixed_point(axes.w), down = fixed_point(axes.h);
  const int64_t width = axes.w.out, height = axes.h.in, grain = grain_of(width);
  const Axis<double>& tall = axes.h;
  parallel_for(0, axes.planes, grain_of(axes.out_plane()), [&](int64_t begin, int64_t end) {
    const std::unique_ptr<uint8_t[]> middle(new uint8_t[static_cast<size_t>(width * height)]);
    for (int64_t p = begin; p < end; ++p) {
      const uint8_t* from = in + p * axes.in_plane();
      parallel_for(0, height, grain, [&](int64_t b, int64_t e) {
        for (int64_t h = b; h < e; ++h)
          byte_row(axes.w, across, from + h * axes.w.in, middle.get() + h * width);
      });
      uint8_t* to = out + p * axes.out_plane();
      parallel_for(0, tall.out * width, grain * width, [&](int64_t b, int64_t e) {
        serial_for(b, e, 4 * tall.taps, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            const int64_t h = i / width, w = i - h * width;
            int64_t sum = 0;
            for (int t = 0; t < tall.taps; ++t)
              sum += int64_t(down.weight[t * tall.out + h]) *
                     middle[(tall.low + tall.index[t * tall.out + h]) * width + w];
            to[i] = tall.identity ? middle[i] : byte(sum, down.shift);
          }
        });
      });
    }
  });
}

template <class T, class A>
void backward_planes(const Axes<A>& axes, bool nearest, const T* grad, T* out) {
  const int64_t large = axes.out_plane(), small = axes.in_plane(), width = axes.w.in;
  const int dt = axes.d.taps, ht = axes.h.taps, wt = axes.w.taps;
  parallel_for(0, axes.planes, grain_of(large), [&](int64_t begin, int64_t end) {
    std::vector<A> plane(static_cast<size_t>(small)), row(static_cast<size_t>(width));
    Steps steps;
    for (int64_t p = begin; p < end; ++p) {
      std::fill(plane.begin(), plane.end(), A(0));
      const T* g = grad + p * large;
      for (int64_t d = 0; d < axes.d.out; ++d) {
        for (int64_t h = 0; h < axes.h.out; ++h, g += axes.w.out) {
          std::fill(row.begin(), row.end(), A(0));
          A* const first = row.data() + axes.w.low;
          serial_for(0, axes.w.out, 4 * wt, [&](int64_t from, int64_t to) {
            for (int64_t w = from; w < to; ++w)
              for (int t = 0; t < wt; ++t) {
                const int64_t i = t * axes.w.out + w;
                first[axes.w.index[i]] +=
                    nearest ? static_cast<A>(g[w]) : axes.w.weight[i] * static_cast<A>(g[w]);
              }
          });
          for (int i = 0; i < dt; ++i)
            for (int j = 0; j < ht; ++j) {
              const int64_t z = axes.d.low + axes.d.index[i * axes.d.out + d];
              const int64_t y = axes.h.low + axes.h.index[j * axes.h.out + h];
              const A weight =
                  nearest ? A(1)
                          : axes.d.weight[i * axes.d.out + d] * axes.h.weight[j * axes.h.out + h];
              add_row<A, A>(plane.data() + (z * axes.h.in + y) * width, row.data(), weight, width,
                            false);
            }
          steps.add(4 * wt * axes.w.out + dt * ht * width);
        }
      }
      std::transform(plane.begin(), plane.end(), out + p * small,
                     [](A x) { return static_cast<T>(x); });
    }
  });
}

// Half types keep their weights in their own precision where PyTorch does; of two linear weights
// the first is what the rounded second leaves.
template <class T, class A> void round_weights(Axis<A>& axis, int dims, Mode mode) {
  if constexpr (std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>) {
    const bool linear = mode == Mode::Linear && dims != 2;
    if (mode != Mode::Cubic && !linear) return;
    for (A& w : axis.weight) w = static_cast<A>(static_cast<T>(w));
    for (int64_t o = 0; linear && axis.taps == 2 && o < axis.out; ++o)
      axis.weight[o] = static_cast<A>(static_cast<T>(1 - axis.weight[axis.out + o]));
  }
}

// Channels lie innermost on both sides.
bool channels_innermost(const Tensor& x, const Tensor& out) {
  return x.dim() >= 4 && x.size(1) > 1 && c10::is_channels_last_strides(x.sizes(), x.strides()) &&
         c10::is_channels_last_strides(out.sizes(), out.strides());
}

} // namespace

Specs specs_of(IntArrayRef in, IntArrayRef out, int dims, Mode mode, bool align_corners,
               const Scales& scales) {
  Specs specs;
  specs.dims = dims;
  for (int back = 1; back <= 3; ++back) {
    AxisSpec& axis = specs.axis[3 - back];
    axis = {Mode::Nearest, 1, 1, false, std::nullopt};
    if (back > dims) continue;
    const int64_t a = in[in.size() - back], b = out[out.size() - back];
    TORCH_CHECK(a < std::numeric_limits<int32_t>::max(),
                "upsample: a dimension of 2^31 or more elements cannot be resized, got ", in);
    axis = {mode, a, b, align_corners, scales[3 - back]};
  }
  specs.planes = 1;
  for (size_t i = 0; i + dims < in.size(); ++i) specs.planes *= in[i];
  return specs;
}

void upsample(const Tensor& self, const Tensor& out, int dims, Mode mode, bool align_corners,
              const Scales& scales, const char* name) {
#ifndef CRESSET_NO_CUDA
  if (self.is_cuda())
    return upsample_cuda(
        self, out, specs_of(self.sizes(), out.sizes(), dims, mode, align_corners, scales), name);
#endif
  using All = Concat<FloatingTypes, Types<uint8_t>>::type;
  const bool bytes = self.scalar_type() == kByte && !is_nearest(mode);
  TORCH_CHECK_NOT_IMPLEMENTED(!bytes || dims == 2, "\"", name, "\" not implemented for 'Byte'");
  dtype_switch<All>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<T, uint8_t>, double, Compute<T>>;
    if (out.numel() == 0) return;
    const bool last = !bytes && channels_innermost(self, out);
    const Tensor x = last ? self : self.contiguous();
    const Tensor target =
        last || out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type());
    Specs specs = specs_of(x.sizes(), out.sizes(), dims, mode, align_corners, scales);
    if (last) specs.planes = x.size(0);
    {
      const BlockingRegion unlocked;
      const T* from = static_cast<const T*>(x.data_ptr());
      T* to = static_cast<T*>(target.data_ptr());
      const auto round = [&](Axis<A>& axis) { round_weights<T>(axis, dims, mode); };
      const auto resize = [&](const Axes<A>& axes) {
        if (is_nearest(mode)) {
          nearest_rows(axes, from, to);
        } else if constexpr (std::is_same_v<T, uint8_t>) {
          byte_planes(axes, from, to);
        } else {
          weighted_rows<T, A>(axes, from, to);
        }
      };
      // How bytes are rounded depends on all weights at once.
      if (bytes)
        resize(whole_axes<A>(specs));
      else
        for_parts<A>(specs, last ? x.size(1) : 1, round, resize);
    }
    if (!target.is_same(out)) out.copy_(target);
  });
}

void upsample_backward(const Tensor& grad, const Tensor& out, int dims, Mode mode,
                       bool align_corners, const Scales& scales, const char* name) {
#ifndef CRESSET_NO_CUDA
  if (grad.is_cuda())
    return upsample_backward_cuda(
        grad, out, specs_of(out.sizes(), grad.sizes(), dims, mode, align_corners, scales), name);
#endif
  dtype_switch<FloatingTypes>(grad.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Compute<T>;
    if (out.numel() == 0) return;
    const Tensor g = grad.contiguous();
    const Tensor target = out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type());
    const Axes<A> axes =
        whole_axes<A>(specs_of(out.sizes(), g.sizes(), dims, mode, align_corners, scales));
    {
      const BlockingRegion unlocked;
      backward_planes<T, A>(axes, is_nearest(mode), static_cast<const T*>(g.data_ptr()),
                            static_cast<T*>(target.data_ptr()));
    }
    if (!target.is_same(out)) out.copy_(target);
  });
}

} // namespace at::native::interpolate
