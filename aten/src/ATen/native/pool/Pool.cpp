// Maximum and mean over windows, with their gradients. Outputs are independent of each other, and
// cut into groups wherever it falls; of the gradients only whole planes are.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/native/pool/Native.h>
#include <ATen/native/pool/PoolRows.h>
#include <ATen/native/pool/PoolWindows.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

namespace at::native {

namespace pool_rows {
CRESSET_DEFINE_ISA_TABLE(Table);
} // namespace pool_rows
namespace {

using AvgTypes = Concat<FloatingTypes, Types<int64_t>>::type;
template <class T> using acc_t = gemm::acc_t<T>;

// The windows of one output; `large` ones are left now and then to respond to Ctrl-C.
struct Window {
  PoolWindow z, y, x;
  const PoolWindows& all;
  bool large;

  // f(position in the input plane) for the elements.
  template <class F> void each(const F& f) const {
    const int64_t step = all.axis[2].step, lo = x.lo, hi = x.hi;
    each_row([&](int64_t row) {
      if (large) {
        serial_for(0, (hi - lo + step - 1) / step, 1, [&](int64_t b, int64_t e) {
          for (int64_t k = b; k < e; ++k) f(row + lo + k * step);
        });
        check_interrupt();
      } else if (step == 1) {
        for (int64_t k = row + lo; k < row + hi; ++k) f(k);
      } else {
        for (int64_t k = lo; k < hi; k += step) f(row + k);
      }
    });
  }
  // f(position of the row's first element in the input plane).
  template <class F> void each_row(const F& f) const {
    for (int64_t i = z.lo; i < z.hi; i += all.axis[0].step)
      for (int64_t j = y.lo; j < y.hi; j += all.axis[1].step)
        f((i * all.axis[1].in + j) * all.axis[2].in);
  }
  // f(the same of the first row), for each depth.
  template <class F> void each_depth(const F& f) const {
    for (int64_t i = z.lo; i < z.hi; i += all.axis[0].step)
      f((i * all.axis[1].in + y.lo) * all.axis[2].in);
  }
  int64_t first() const { return (z.lo * all.axis[1].in + y.lo) * all.axis[2].in + x.lo; }
};

int64_t window_cost(const PoolWindows& w) {
  return std::max<int64_t>(1, w.axis[0].most() * w.axis[1].most() * w.axis[2].most());
}

// f(plane, od, oh, first ow, last ow) for the parts of rows that outputs begin .. end are, counted
// through all planes.
template <class F>
void for_row_parts(const PoolWindows& w, int64_t begin, int64_t end, const F& f) {
  const int64_t width = w.axis[2].out, height = w.axis[1].out, depth = w.axis[0].out;
  const int64_t row = begin / width;
  int64_t oh = row % height, od = row / height % depth, plane = row / height / depth;
  for (int64_t position = begin, first = begin - row * width; position < end; first = 0) {
    const int64_t last = std::min(width, first + (end - position));
    f(plane, od, oh, first, last);
    position += last - first;
    if (++oh < height) continue;
    oh = 0;
    if (++od < depth) continue;
    od = 0;
    ++plane;
  }
}

// The same for all outputs, in groups of fixed size.
template <class F> void for_all_rows(const PoolWindows& w, const F& f) {
  const BlockingRegion unlocked;
  const int64_t cost = window_cost(w);
  parallel_for(0, w.planes * w.out_plane(), std::max<int64_t>(1, 32768 / cost),
               [&](int64_t begin, int64_t end) {
                 serial_for(begin, end, cost,
                            [&](int64_t b, int64_t e) { for_row_parts(w, b, e, f); });
               });
}

// f(plane) for all planes: gradients of one go to the same places.
template <class F> void for_planes(const PoolWindows& w, const F& f) {
  const BlockingRegion unlocked;
  const int64_t plane = std::max<int64_t>({w.in_plane(), w.out_plane(), 1});
  parallel_for(0, w.planes, std::max<int64_t>(1, 16384 / plane), f);
}

template <class T> T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return static_cast<T>(-std::numeric_limits<float>::infinity());
  }
}

// NaN is larger than everything, and the last one counts.
template <class T> void max_window(const Window& w, const T* in, T& value, int64_t& place) {
  T best = lowest<T>();
  int64_t where = w.first();
  w.each([&](int64_t i) {
    const T v = in[i];
    if (v > best || v != v) best = v, where = i;
  });
  value = best;
  place = where;
}

// Outputs for fewer of which a loop over all of them is not worth its preparation.
constexpr int64_t kFewOutputs = 4;

// Scratch of one thread.
struct RowRoom {
  static constexpr int64_t kMost = 4096; // outputs at a time
  std::vector<int64_t> lines;
  std::vector<int32_t> where;
};
// One for all dtypes and behind a pointer: the memory of thread-local variables that libraries
// loaded at run time have to share is some hundred bytes.
RowRoom& room_of_thread() {
  static thread_local std::unique_ptr<RowRoom> room;
  if (!room) room = std::make_unique<RowRoom>();
  return *room;
}

// The lines that `n` equal windows read, of which `start` is the one `skipped` before the first.
pool_rows::RowShape equal_row(const Window& start, const PoolAxis::Equal& equal, int64_t skipped,
                              int64_t n, RowRoom& room) {
  const PoolWindows& w = start.all;
  const int64_t step = w.axis[2].step, taps = (equal.span + step - 1) / step;
  room.lines.clear();
  start.each_row(
      [&](int64_t row) { room.lines.push_back(row + start.x.lo + skipped * equal.stride); });
  return {n, equal.stride, taps, step, static_cast<int64_t>(room.lines.size()), room.lines.data()};
}

// `count` outputs of a row, whose windows are all equal but for their place; `start` is the first
// one. Says false when there is no fast loop for them. Without `indices` values only.
template <class T> bool max_equal(const Window& start, const PoolAxis::Equal& equal, const T* in,
                                  int64_t count, T* out, int64_t* indices, RowRoom& room) {
  const pool_rows::MaxFn fast = pool_rows::table().max[static_cast<int>(c10::scalar_type_of<T>)];
  if (fast == nullptr) return false;
  for (int64_t done = 0; done < count; done += RowRoom::kMost) {
    const int64_t n = std::min(count - done, RowRoom::kMost);
    const pool_rows::RowShape shape = equal_row(start, equal, done, n, room);
    if (shape.line_count == 0) return false;
    if (indices == nullptr) {
      fast(shape, in, out + done, nullptr);
      continue;
    }
    room.where.resize(static_cast<size_t>(n));
    fast(shape, in, out + done, room.where.data());
    for (int64_t i = 0; i < n; ++i) indices[done + i] = room.where[i];
  }
  return true;
}

// Outputs [first, last) of the row (od, oh) that begins at `out` and `indices`.
template <class T> void max_row(const PoolWindows& w, const PoolAxis::Equal& equal, const T* in,
                                int64_t od, int64_t oh, int64_t first, int64_t last, T* out,
                                int64_t* indices, RowRoom& room) {
  Window here{w.axis[0].window(od), w.axis[1].window(oh), {}, w, window_cost(w) > kStretch};
  const auto by_window = [&](int64_t b, int64_t e) {
    for (int64_t x = b; x < e; ++x) {
      here.x = w.axis[2].window(x);
      int64_t place;
      max_window(here, in, out[x], indices ? indices[x] : place);
    }
  };
  const int64_t b = std::max(first, equal.first), e = std::min(last, equal.last);
  if (e - b < kFewOutputs || here.large || w.in_plane() > std::numeric_limits<int32_t>::max())
    return by_window(first, last);
  by_window(first, b);
  here.x = w.axis[2].window(b);
  if (!max_equal(here, equal, in, e - b, out + b, indices ? indices + b : nullptr, room))
    by_window(b, e);
  by_window(e, last);
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

// Without defined `indices` values only.
template <class Kinds> void max_windows(const PoolWindows& w, const Tensor& self, const Tensor& out,
                                        const Tensor& indices, const char* name) {
  dtype_switch<Kinds>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out.numel() == 0) return;
    const Tensor x = self.contiguous();
    const Target values(out);
    const std::optional<Target> places =
        indices.defined() ? std::optional<Target>(indices) : std::nullopt;
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(values.tensor.data_ptr());
    int64_t* place_data = places ? places->tensor.data_ptr<int64_t>() : nullptr;
    const PoolAxis::Equal equal = w.axis[2].equal();
    for_all_rows(w, [&](int64_t plane, int64_t od, int64_t oh, int64_t first, int64_t last) {
      RowRoom& room = room_of_thread();
      const int64_t row = ((plane * w.axis[0].out + od) * w.axis[1].out + oh) * w.axis[2].out;
      max_row(w, equal, from + plane * w.in_plane(), od, oh, first, last, to + row,
              place_data ? place_data + row : nullptr, room);
    });
    values.store();
    if (places) places->store();
  });
}

// Elements of one plane that are worth another thread.
constexpr int64_t kPlaneGrain = 65536;

template <class A, class T> void store_plane(const A* from, int64_t n, T* to) {
  parallel_for(0, n, kPlaneGrain, [=](int64_t b, int64_t e) {
    std::transform(from + b, from + e, to + b, [](A v) { return static_cast<T>(v); });
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
    const int64_t* place_data = places.data_ptr<int64_t>();
    T* to = static_cast<T*>(target.tensor.data_ptr());
    const int64_t in = w.in_plane(), out = w.out_plane();
    for_planes(w, [&](int64_t begin, int64_t end) {
      std::vector<A> wide(std::is_same_v<A, T> ? 0 : in);
      for (int64_t i = begin; i < end; ++i) {
        A* sum = wide.data();
        if constexpr (std::is_same_v<A, T>) sum = to + i * in;
        parallel_for(0, in, kPlaneGrain,
                     [=](int64_t b, int64_t e) { std::fill(sum + b, sum + e, A(0)); });
        serial_for(i * out, (i + 1) * out, 4, [&](int64_t b, int64_t e) {
          for (int64_t p = b; p < e; ++p) {
            const int64_t place = place_data[p];
            TORCH_CHECK(place >= 0 && place < in, "Found an invalid max index: ", place,
                        " (input planes have ", in, " elements)");
            sum[place] = static_cast<A>(sum[place] + static_cast<A>(from[p]));
          }
        });
        if constexpr (!std::is_same_v<A, T>) store_plane(sum, in, to + i * in);
      }
    });
    target.store();
  });
}

// What a window's sum is divided by.
struct Divisor {
  bool with_padding;
  std::optional<int64_t> fixed;
  int64_t of(const Window& w) const {
    if (fixed) return *fixed;
    if (with_padding) return w.z.full * w.y.full * w.x.full;
    return (w.z.hi - w.z.lo) * (w.y.hi - w.y.lo) * (w.x.hi - w.x.lo);
  }
};

// The sum of elements that lie together, in so many sums beside each other: one alone would wait
// for every addition.
constexpr int64_t kLanes = 8;
template <class A, class T> A sum_of(const T* from, int64_t n) {
  A sum = A(0);
  serial_for(0, n, 1, [&](int64_t b, int64_t e) {
    A lanes[kLanes] = {};
    for (; b + kLanes <= e; b += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) lanes[k] += static_cast<A>(from[b + k]);
    for (A lane : lanes) sum += lane;
    for (; b < e; ++b) sum += static_cast<A>(from[b]);
  });
  return sum;
}

// The sum of a window's elements of `plane`.
template <class A, class T> A window_sum(const Window& w, const T* plane) {
  A sum = A(0);
  const int64_t lo = w.x.lo, length = w.x.hi - lo, high = w.y.hi - w.y.lo;
  if (length == w.all.axis[2].in && high > 0) { // the rows lie together
    w.each_depth([&](int64_t e) { sum += sum_of<A>(plane + e, high * length); });
  } else if (length >= kLanes) {
    w.each_row([&](int64_t e) { sum += sum_of<A>(plane + e + lo, length); });
  } else if (w.large) {
    w.each([&](int64_t e) { sum += static_cast<A>(plane[e]); });
  } else {
    w.each_row([&](int64_t e) {
      for (int64_t k = 0; k < length; ++k) sum += static_cast<A>(plane[e + lo + k]);
    });
  }
  return sum;
}

// The means of outputs [first, last) of the row (od, oh) that begins at `out`. Short windows that
// are equal but for their place are summed all at once, in the same order.
template <class T> void mean_row(const PoolWindows& w, const PoolAxis::Equal& equal,
                                 const Divisor& divisor, const T* plane, int64_t od, int64_t oh,
                                 int64_t first, int64_t last, T* out) {
  using A = acc_t<T>;
  Window here{w.axis[0].window(od), w.axis[1].window(oh), {}, w, window_cost(w) > kStretch};
  const int64_t lines = (here.z.hi - here.z.lo) * (here.y.hi - here.y.lo);
  const auto mean = [&](A sum, A count) { return static_cast<T>(sum / count); };
  const auto by_window = [&](int64_t b, int64_t e) {
    for (int64_t x = b; x < e; ++x) {
      here.x = w.axis[2].window(x);
      out[x] = lines > 0 && here.x.hi > here.x.lo
                   ? mean(window_sum<A>(here, plane), static_cast<A>(divisor.of(here)))
                   : T(0);
    }
  };
  const int64_t b = std::max(first, equal.first), e = std::min(last, equal.last);
  if constexpr (std::is_same_v<T, A> && std::is_floating_point_v<T>) {
    const pool_rows::SumFn fast = pool_rows::table().sum[static_cast<int>(c10::scalar_type_of<T>)];
    if (e - b >= kFewOutputs && lines > 0 && !here.large && equal.span < kLanes) {
      by_window(first, b);
      here.x = w.axis[2].window(b);
      const A count = static_cast<A>(divisor.of(here));
      fast(equal_row(here, equal, 0, e - b, room_of_thread()), plane, out + b);
      std::transform(out + b, out + e, out + b, [&](T sum) { return mean(sum, count); });
      return by_window(e, last);
    }
  }
  by_window(first, last);
}

void mean_windows(const PoolWindows& w, const Divisor& divisor, const Tensor& self,
                  const Tensor& out, const char* name) {
  dtype_switch<AvgTypes>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out.numel() == 0) return;
    const Tensor x = self.contiguous();
    const Target target(out);
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(target.tensor.data_ptr());
    const PoolAxis::Equal equal = w.axis[2].equal();
    for_all_rows(w, [&](int64_t p, int64_t od, int64_t oh, int64_t first, int64_t last) {
      T* row = to + ((p * w.axis[0].out + od) * w.axis[1].out + oh) * w.axis[2].out;
      mean_row(w, equal, divisor, from + p * w.in_plane(), od, oh, first, last, row);
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
    const int64_t cost = window_cost(w);
    for_planes(w, [&](int64_t begin, int64_t end) {
      const std::unique_ptr<A[]> sum(new A[static_cast<size_t>(w.in_plane())]);
      A* const data = sum.get();
      for (int64_t i = begin; i < end; ++i) {
        parallel_for(0, w.in_plane(), kPlaneGrain,
                     [=](int64_t b, int64_t e) { std::fill(data + b, data + e, A(0)); });
        serial_for(i * w.out_plane(), (i + 1) * w.out_plane(), cost, [&](int64_t b, int64_t e) {
          for_row_parts(w, b, e, [&](int64_t, int64_t od, int64_t oh, int64_t first, int64_t last) {
            const T* row = from + ((i * w.axis[0].out + od) * w.axis[1].out + oh) * w.axis[2].out;
            Window here{w.axis[0].window(od), w.axis[1].window(oh), {}, w, cost > kStretch};
            for (int64_t ow = first; ow < last; ++ow) {
              here.x = w.axis[2].window(ow);
              const int64_t count = divisor.of(here);
              if (count == 0) continue;
              const A share = static_cast<A>(row[ow]) / static_cast<A>(count);
              here.each([&](int64_t element) { data[element] += share; });
            }
          });
        });
        store_plane(data, w.in_plane(), to + i * w.in_plane());
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

Tensor max_pool_values(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                       IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, size_t dims,
                       const char* name) {
  const PoolParams p = pool_params(kernel, stride, padding, dilation, ceil_mode, dims, name);
  const Tensor out =
      detail::empty(pool_output_size(self.sizes(), p, name, true), self.scalar_type());
  max_windows<RealTypes>(fixed_windows(self.sizes(), out.sizes(), p), self, out, {}, name);
  return out;
}

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
namespace {
// A mean of integers is none, though avg_pool2d gives one of int64.
void refuse_integers(const Tensor& self, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"", name, "\" not implemented for '",
                              self.scalar_type(), "'");
}
} // namespace
void adaptive_avg_pool2d_cpu(const Tensor& self, IntArrayRef, const Tensor& out) {
  refuse_integers(self, "adaptive_avg_pool2d");
  mean_windows(adaptive_windows(self.sizes(), out.sizes(), 2), {true, std::nullopt}, self, out,
               "adaptive_avg_pool2d");
}
void adaptive_avg_pool3d_cpu(const Tensor& self, IntArrayRef, const Tensor& out) {
  refuse_integers(self, "adaptive_avg_pool3d");
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
