// Cuts transforms along a dimension into blocks of lines for the loops of FftKernel.h. Many short
// lines go side by side, as many at a time as a register has lanes. A long line, or a few that
// would leave most lanes idle, is taken as a matrix: transforms of its columns, factors, transforms
// of its rows, each again side by side. Blocks have fixed boundaries, so that the bits do not
// depend on the number of threads.
#include <ATen/native/fft/FftDriver.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/fft/FftKernel.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <type_traits>

namespace at::native::fft {
namespace {

template <class T> const FftLoops<T>& loops() {
  static const FftLoops<T> chosen = [] {
    constexpr bool single = std::is_same_v<T, float>;
    if constexpr (single)
      return CRESSET_BY_ISA(, float_loops)();
    else
      return CRESSET_BY_ISA(, double_loops)();
  }();
  return chosen;
}

constexpr int kMostLanes = 64;
// Elements for which it pays to wake a thread.
constexpr int64_t kGrain = 16384;

// Room for two buffers and for temporaries; one allocation per chunk of work.
template <class T> struct Room {
  Tensor storage;
  T *a, *b;
  explicit Room(int64_t values)
      : storage(detail::empty({2 * (values + 16)}, c10::scalar_type_of<T>)),
        a(static_cast<T*>(storage.data_ptr())), b(a + (values + 15) / 16 * 16) {}
};

// The lines of a tensor along a dimension: sizes and steps of the others, innermost first.
struct Lines {
  c10::SmallVector<int64_t, 8> sizes, in, out;
  int64_t count = 1;

  void add(int64_t size, int64_t in_step, int64_t out_step) {
    count *= size;
    if (size == 1) return;
    if (!sizes.empty() && in_step == in.back() * sizes.back() &&
        out_step == out.back() * sizes.back()) {
      sizes.back() *= size;
      return;
    }
    sizes.push_back(size);
    in.push_back(in_step);
    out.push_back(out_step);
  }
  // Where lines begin .. begin + count start.
  void places(int64_t begin, int count, int64_t* in_at, int64_t* out_at) const {
    c10::SmallVector<int64_t, 8> index(sizes.size(), 0);
    int64_t from = 0, to = 0, rest = begin;
    for (size_t d = 0; d < sizes.size(); ++d) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
      from += index[d] * in[d];
      to += index[d] * out[d];
    }
    for (int l = 0; l < count; ++l) {
      in_at[l] = from;
      out_at[l] = to;
      for (size_t d = 0; d < sizes.size(); ++d) {
        from += in[d];
        to += out[d];
        if (++index[d] < sizes[d]) break;
        from -= sizes[d] * in[d];
        to -= sizes[d] * out[d];
        index[d] = 0;
      }
    }
  }
};

template <class T> struct Job {
  Kind kind;
  const T* in;
  T* out;
  int64_t n, in_step, out_step;
  bool inverse;
  T scale;
};

// Lines begin .. end, `width` at a time; factors as in FftBlock, from line `begin` = 0 on.
template <class T> void run_blocks(const Job<T>& job, const FftPlan<T>& plan, const Lines& lines,
                                   const FftSplit<T>* split) {
  const FftLoops<T>& loop = loops<T>();
  const int width = job.kind == Kind::C2C ? loop.lanes : 2 * loop.lanes;
  const int64_t blocks = (lines.count + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, kGrain / (job.n * width));
  parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    const Room<T> room(loop.room(plan));
    int64_t in_at[kMostLanes], out_at[kMostLanes];
    FftBlock<T> block;
    block.plan = &plan;
    block.in = job.in;
    block.out = job.out;
    block.in_step = job.in_step;
    block.out_step = job.out_step;
    block.in_at = in_at;
    block.out_at = out_at;
    block.inverse = job.inverse;
    block.scale = job.scale;
    block.a = room.a;
    block.b = room.b;
    for (int64_t i = begin; i < end; ++i) {
      block.count = static_cast<int>(std::min<int64_t>(width, lines.count - i * width));
      lines.places(i * width, block.count, in_at, out_at);
      std::fill(in_at + block.count, in_at + width, in_at[0]);
      if (split) {
        block.factor_re = split->re.data() + i * width;
        block.factor_im = split->im.data() + i * width;
        block.pitch = split->pitch;
      }
      (job.kind == Kind::C2C ? loop.c2c : job.kind == Kind::R2C ? loop.r2c : loop.c2r)(block);
    }
  });
}

// ---- one line at a time -----------------------------------------------------------------------

template <class T> void line_c2c(const Job<T>& job);

// f(i) for the elements of one line, which are independent of each other.
template <class F> void for_elements(int64_t n, const F& f) {
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

template <class T> void line_split(const Job<T>& job, const FftSplit<T>& split) {
  const Tensor middle = detail::empty({2 * job.n}, c10::scalar_type_of<T>);
  T* const tmp = static_cast<T*>(middle.data_ptr());
  Lines columns, rows;
  columns.add(split.n2, job.in_step, 1);
  rows.add(split.n1, split.n2, job.out_step);
  run_blocks<T>(
      {Kind::C2C, job.in, tmp, split.n1, split.n2 * job.in_step, split.n2, job.inverse, T(1)},
      *split.columns, columns, &split);
  run_blocks<T>(
      {Kind::C2C, tmp, job.out, split.n2, 1, split.n1 * job.out_step, job.inverse, job.scale},
      *split.rows, rows, nullptr);
}

// A length with a large prime factor; see FftPlan. An inverse transform exchanges the parts.
template <class T> void line_bluestein(const Job<T>& job, const FftPlan<T>& plan) {
  const int64_t length = plan.inner->n;
  const Tensor buffers = detail::empty({2, 2 * length}, c10::scalar_type_of<T>);
  T *x = static_cast<T*>(buffers.data_ptr()), *y = x + 2 * length;
  const T *chirp = plan.chirp.data(), *spectrum = plan.spectrum.data();
  const int first = job.inverse ? 1 : 0, second = 1 - first;
  for_elements(job.n, [&](int64_t i) {
    const T re = job.in[2 * i * job.in_step + first], im = job.in[2 * i * job.in_step + second];
    x[2 * i] = re * chirp[2 * i] - im * chirp[2 * i + 1];
    x[2 * i + 1] = re * chirp[2 * i + 1] + im * chirp[2 * i];
  });
  parallel_zero(x + 2 * job.n, 2 * (length - job.n) * static_cast<int64_t>(sizeof(T)));
  line_c2c<T>({Kind::C2C, x, y, length, 1, 1, false, T(1)});
  for_elements(length, [&](int64_t i) {
    const T re = y[2 * i], im = y[2 * i + 1];
    y[2 * i] = re * spectrum[2 * i] - im * spectrum[2 * i + 1];
    y[2 * i + 1] = re * spectrum[2 * i + 1] + im * spectrum[2 * i];
  });
  line_c2c<T>({Kind::C2C, y, x, length, 1, 1, true, T(1)});
  for_elements(job.n, [&](int64_t i) {
    const T re = x[2 * i], im = x[2 * i + 1];
    T* to = job.out + 2 * i * job.out_step;
    to[first] = (re * chirp[2 * i] - im * chirp[2 * i + 1]) * job.scale;
    to[second] = (re * chirp[2 * i + 1] + im * chirp[2 * i]) * job.scale;
  });
}

template <class T> void line_c2c(const Job<T>& job) {
  if (job.n >= 64) {
    if (const auto split = fft_split<T>(job.n)) return line_split(job, *split);
  }
  const auto plan = fft_plan<T>(job.n);
  if (plan->inner && job.n > 128) return line_bluestein(job, *plan);
  run_blocks<T>(job, *plan, Lines(), nullptr);
}

// An even number of real values as half as many complex ones: even elements real, odd ones
// imaginary. Their spectra E and O make the line's: E + w O.
template <class T> void line_r2c(const Job<T>& job) {
  const int64_t m = job.n / 2;
  const bool even = job.n % 2 == 0;
  const int64_t room = even ? 2 * m : 2 * job.n;
  const Tensor buffers = detail::empty({2, room}, c10::scalar_type_of<T>);
  T *x = static_cast<T*>(buffers.data_ptr()), *z = x + room;
  if (!even) {
    for_elements(job.n,
                 [&](int64_t i) { x[2 * i] = job.in[i * job.in_step], x[2 * i + 1] = T(0); });
    line_c2c<T>({Kind::C2C, x, z, job.n, 1, 1, false, job.scale});
    for_elements(m + 1, [&](int64_t k) {
      std::copy(z + 2 * k, z + 2 * k + 2, job.out + 2 * k * job.out_step);
    });
    return;
  }
  const T* from = job.in;
  if (job.in_step != 1) {
    for_elements(job.n, [&](int64_t i) { x[i] = job.in[i * job.in_step]; });
    from = x;
  }
  line_c2c<T>({Kind::C2C, from, z, m, 1, 1, false, T(1)});
  const auto roots = fft_roots<T>(job.n);
  const T* w = roots->data();
  const T half = job.scale * T(0.5);
  for_elements(m + 1, [&](int64_t k) {
    const int64_t low = k == m ? 0 : k, high = k == 0 ? 0 : m - k;
    const T er = z[2 * low] + z[2 * high], ei = z[2 * low + 1] - z[2 * high + 1];
    const T o_r = z[2 * low + 1] + z[2 * high + 1], oi = z[2 * high] - z[2 * low];
    T* to = job.out + 2 * k * job.out_step;
    to[0] = (er + (o_r * w[2 * k] - oi * w[2 * k + 1])) * half;
    to[1] = (ei + (o_r * w[2 * k + 1] + oi * w[2 * k])) * half;
  });
}

template <class T> void line_c2r(const Job<T>& job) {
  const int64_t m = job.n / 2;
  const bool even = job.n % 2 == 0;
  const int64_t room = even ? 2 * m : 2 * job.n;
  const Tensor buffers = detail::empty({2, room}, c10::scalar_type_of<T>);
  T *x = static_cast<T*>(buffers.data_ptr()), *z = x + room;
  const auto part = [&](int64_t k, int i) {
    const bool real = k == 0 || (even && k == m);
    return i == 1 && real ? T(0) : job.in[2 * k * job.in_step + i];
  };
  if (!even) {
    for_elements(m + 1, [&](int64_t k) {
      z[2 * k] = part(k, 0);
      z[2 * k + 1] = part(k, 1);
      if (k == 0) return;
      z[2 * (job.n - k)] = part(k, 0);
      z[2 * (job.n - k) + 1] = -part(k, 1);
    });
    line_c2c<T>({Kind::C2C, z, x, job.n, 1, 1, true, job.scale});
    for_elements(job.n, [&](int64_t i) { job.out[i * job.out_step] = x[2 * i]; });
    return;
  }
  const auto roots = fft_roots<T>(job.n);
  const T* w = roots->data();
  for_elements(m, [&](int64_t k) {
    const T ar = part(k, 0), ai = part(k, 1), br = part(m - k, 0), bi = -part(m - k, 1);
    const T dr = ar - br, di = ai - bi;
    // The difference times the conjugate root gives the odd elements' spectrum.
    const T o_r = dr * w[2 * k] + di * w[2 * k + 1], oi = di * w[2 * k] - dr * w[2 * k + 1];
    z[2 * k] = ar + br - oi;
    z[2 * k + 1] = ai + bi + o_r;
  });
  T* to = job.out_step == 1 ? job.out : x;
  line_c2c<T>({Kind::C2C, z, to, m, 1, 1, true, job.scale});
  if (job.out_step == 1) return;
  for_elements(job.n, [&](int64_t i) { job.out[i * job.out_step] = x[i]; });
}

// ---- all lines --------------------------------------------------------------------------------

// Whether lines are better taken one at a time: they are long, or too few to fill the lanes.
template <class T> bool one_by_one(const Job<T>& job, int64_t lines) {
  if (job.n < 64) return false;
  const FftShape shape = fft_shape(job.n);
  const bool works = shape.convolved || fft_split<T>(job.n) ||
                     (job.kind != Kind::C2C && job.n % 2 == 0 && fft_split<T>(job.n / 2));
  if (!works) return false;
  if (shape.room >= kLongLine) return true;
  const int64_t width = loops<T>().lanes * (job.kind == Kind::C2C ? 1 : 2);
  const int64_t rounded = (lines + width - 1) / width * width;
  return lines * 2 <= rounded;
}

template <class T> void run(const Job<T>& job, const Lines& lines) {
  if (!one_by_one(job, lines.count)) {
    const auto plan = fft_plan<T>(job.n);
    run_blocks<T>(job, *plan, lines, nullptr);
    return;
  }
  // A single line is left to the threads itself.
  const int64_t grain = std::max<int64_t>(1, kGrain / job.n);
  parallel_for(0, lines.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t from = 0, to = 0;
      lines.places(i, 1, &from, &to);
      Job<T> line = job;
      line.in += job.kind == Kind::R2C ? from : 2 * from;
      line.out += job.kind == Kind::C2R ? to : 2 * to;
      (job.kind == Kind::C2C   ? line_c2c<T>
       : job.kind == Kind::R2C ? line_r2c<T>
                               : line_c2r<T>)(line);
    }
  });
}

// The dimensions other than `dim`, those first along which neighbouring lines lie side by side.
Lines lines_of(const Tensor& in, const Tensor& out, int64_t dim) {
  c10::SmallVector<int64_t, 8> order;
  for (int64_t d = 0; d < in.dim(); ++d)
    if (d != dim && in.size(d) != 1) order.push_back(d);
  const bool rows = in.dim() == 0 || in.stride(dim) == 1;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return rows ? out.stride(a) < out.stride(b) : in.stride(a) < in.stride(b);
  });
  Lines lines;
  for (const int64_t d : order) lines.add(in.size(d), in.stride(d), out.stride(d));
  return lines;
}

} // namespace

void transform_dim(Kind kind, const Tensor& in, const Tensor& out, int64_t dim, int64_t n,
                   bool inverse, double scale) {
  if (out.numel() == 0) return;
  const auto with = [&](auto zero) {
    using T = decltype(zero);
    const Job<T> job{kind,
                     static_cast<const T*>(in.data_ptr()),
                     static_cast<T*>(out.data_ptr()),
                     n,
                     in.stride(dim),
                     out.stride(dim),
                     inverse,
                     static_cast<T>(scale)};
    const BlockingRegion unlocked;
    run(job, lines_of(in, out, dim));
  };
  const ScalarType dtype = kind == Kind::R2C ? in.scalar_type() : out.scalar_type();
  if (dtype == kComplexFloat || dtype == kFloat) {
    with(float());
  } else {
    with(double());
  }
}

void fill_symmetric(const Tensor& out, IntArrayRef dims) {
  const int64_t last = dims.back(), n = out.size(last), step = out.stride(last);
  if (out.numel() == 0 || n < 3) return;
  // The other dimensions, and the way back along those that are mirrored.
  c10::SmallVector<int64_t, 8> sizes, steps;
  c10::SmallVector<bool, 8> mirrored;
  int64_t rows = 1;
  for (int64_t d = 0; d < out.dim(); ++d) {
    if (d == last || out.size(d) == 1) continue;
    sizes.push_back(out.size(d));
    steps.push_back(out.stride(d));
    mirrored.push_back(std::find(dims.begin(), dims.end(), d) != dims.end());
    rows *= out.size(d);
  }
  const auto with = [&](auto zero) {
    using T = decltype(zero);
    T* const data = static_cast<T*>(out.data_ptr());
    const BlockingRegion unlocked;
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row, to = 0, from = 0;
        for (size_t d = sizes.size(); d-- > 0;) {
          const int64_t i = rest % sizes[d];
          rest /= sizes[d];
          to += i * steps[d];
          from += (mirrored[d] && i != 0 ? sizes[d] - i : i) * steps[d];
        }
        for_elements(n - n / 2 - 1, [&](int64_t i) {
          const int64_t k = n / 2 + 1 + i;
          const T* source = data + 2 * (from + (n - k) * step);
          T* target = data + 2 * (to + k * step);
          target[0] = source[0];
          target[1] = -source[1];
        });
      }
    });
  };
  if (out.scalar_type() == kComplexFloat) {
    with(float());
  } else {
    with(double());
  }
}

} // namespace at::native::fft
