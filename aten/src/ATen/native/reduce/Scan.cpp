// Running reductions along a dimension: cumsum, cumprod, logcumsumexp, cummax and cummin. The
// tensor is seen as [outer, n, inner]; each (outer, inner) line is scanned in order in a wider
// accumulator, and lines that lie side by side are carried together so that memory is read in its
// own order.
#include <ATen/native/OutDtype.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/reduce/Native.h>

#include <algorithm>
#include <memory>

#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/parallel/Stretches.h>
#include <ATen/vec/ScalarMath.h>

namespace at::native {
namespace {

constexpr int64_t kLineTile = 512;
constexpr int64_t kScanGrain = 32768;

// float and Half lines carry their running value in more bits than they store.
template <class T> struct Carry { using type = T; };
template <> struct Carry<float> { using type = double; };
template <> struct Carry<c10::Half> { using type = float; };
template <> struct Carry<c10::BFloat16> { using type = float; };
template <> struct Carry<c10::complex<float>> { using type = c10::complex<double>; };
template <class T> using carry_t = typename Carry<T>::type;

struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
};
Lines lines_of(const Tensor& t, int64_t dim) {
  Lines l;
  if (t.dim() == 0) return l;
  const int64_t d = wrap_dim(dim, t.dim());
  l.n = t.sizes()[d];
  for (int64_t i = 0; i < d; ++i) l.outer *= t.sizes()[i];
  for (int64_t i = d + 1; i < t.dim(); ++i) l.inner *= t.sizes()[i];
  return l;
}

// body(first element of a bundle of lines, lines in the bundle), in parallel.
template <class F> void for_bundles(const Lines& l, const F& body) {
  if (l.n == 0) return; // however many lines there are
  const int64_t tiles = (l.inner + kLineTile - 1) / kLineTile;
  const int64_t work = std::max<int64_t>(1, l.n * std::min(l.inner, kLineTile));
  const auto run = [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t first = i % tiles * kLineTile;
      body(i / tiles * l.n * l.inner + first, std::min(kLineTile, l.inner - first));
    }
  };
  if (l.outer * l.n * l.inner <= kScanGrain) {
    run(0, l.outer * tiles);
    return;
  }
  at::BlockingRegion region;
  at::parallel_for(0, l.outer * tiles, std::max<int64_t>(1, kScanGrain / work), run);
}

template <class T, class Step>
void scan(const Tensor& in, const Tensor& out, int64_t dim, carry_t<T> start, const Step& step) {
  using A = carry_t<T>;
  const Lines l = lines_of(out, dim);
  const T* from = static_cast<const T*>(in.const_data_ptr());
  T* to = static_cast<T*>(out.mutable_data_ptr());
  for_bundles(l, [&](int64_t base, int64_t width) {
    if (width == 1) {
      A carried = start;
      serial_for(0, l.n, 8, [&](int64_t begin, int64_t end) {
        A acc = carried; // in a register: what is captured lives in memory, like the output
        for (int64_t i = begin, position = base + begin * l.inner; i < end;
             ++i, position += l.inner) {
          acc = step(acc, static_cast<A>(from[position]));
          to[position] = static_cast<T>(acc);
        }
        carried = acc;
      });
      return;
    }
    A acc[kLineTile];
    std::fill(acc, acc + width, start);
    serial_for(0, l.n, 8 * width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin, position = base + begin * l.inner; i < end;
           ++i, position += l.inner) {
        for (int64_t k = 0; k < width; ++k) {
          acc[k] = step(acc[k], static_cast<A>(from[position + k]));
          to[position + k] = static_cast<T>(acc[k]);
        }
      }
    });
  });
}

// log(e^a + e^b). Equal infinities are returned as they are; NaN wins.
template <class A> A log_add_exp(A a, A b) {
  if constexpr (c10::is_complex_v<A>) {
    using R = typename A::value_type;
    const bool a_first = a.real_ >= b.real_;
    const A top = a_first ? a : b, low = a_first ? b : a;
    if (low.real_ == -c10::numeric_limits<R>::infinity()) return top;
    const A ratio = vm::exp(low - top);
    return top + vm::log(A(R(1)) + ratio);
  } else {
    if (a != a || b != b) return a + b;
    const A top = a >= b ? a : b, low = a >= b ? b : a;
    if (low == -c10::numeric_limits<A>::infinity() || top - top != A(0)) return top;
    return top + vm::log1p(vm::exp(low - top));
  }
}

template <class Better> void scan_extremum(const Tensor& self, const Tensor& values,
                                           const Tensor& indices, int64_t dim, const char* name,
                                           const Better& better) {
  const Lines l = lines_of(self, dim);
  const Tensor in = self.scalar_type() == kBool ? private_copy(self) : self.contiguous();
  int64_t* where = static_cast<int64_t*>(indices.mutable_data_ptr());
  dtype_switch<RealTypesAndBool>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(in.const_data_ptr());
    T* to = static_cast<T*>(values.mutable_data_ptr());
    for_bundles(l, [&](int64_t base, int64_t width) {
      for (int64_t k = base; k < base + width && l.n > 0; ++k) to[k] = from[k], where[k] = 0;
      if (width == 1) {
        T carried = from[base];
        int64_t place = 0;
        serial_for(1, l.n, 4, [&](int64_t begin, int64_t end) {
          T best = carried;
          int64_t at_best = place;
          for (int64_t i = begin, position = base + begin * l.inner; i < end;
               ++i, position += l.inner) {
            const T x = from[position];
            const bool take = x != x || (best == best && better(x, best));
            best = take ? x : best;
            at_best = take ? i : at_best;
            to[position] = best;
            where[position] = at_best;
          }
          carried = best;
          place = at_best;
        });
        return;
      }
      serial_for(1, l.n, 4 * width, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin, position = base + begin * l.inner; i < end;
             ++i, position += l.inner) {
          for (int64_t k = position; k < position + width; ++k) {
            const T x = from[k], best = to[k - l.inner];
            const bool take = x != x || (best == best && better(x, best));
            to[k] = take ? x : best;
            where[k] = take ? i : where[k - l.inner];
          }
        }
      });
    });
  });
}

Tensor scan_input(const Tensor& self, const Tensor& out) {
  return self.to(out.scalar_type()).contiguous();
}

} // namespace

void cumsum_cpu(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  const Tensor in = scan_input(self, out);
  dtype_switch<AllTypes>(out.scalar_type(), "cumsum_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = carry_t<T>;
    scan<T>(in, out, dim, A(0), [](A a, A b) { return static_cast<A>(a + b); });
  });
}

void cumprod_cpu(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  const Tensor in = scan_input(self, out);
  dtype_switch<AllTypes>(out.scalar_type(), "cumprod_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = carry_t<T>;
    scan<T>(in, out, dim, A(1), [](A a, A b) { return static_cast<A>(a * b); });
  });
}

void logcumsumexp_cpu(const Tensor& self, int64_t dim, const Tensor& out) {
  const Tensor in = scan_input(self, out);
  dtype_switch<FloatingAndComplexTypes>(out.scalar_type(), "logcumsumexp_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = carry_t<T>;
    const A start(-c10::numeric_limits<c10::real_type_t<A>>::infinity());
    scan<T>(in, out, dim, start, [](A a, A b) { return log_add_exp(a, b); });
  });
}

void cummax_cpu(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  scan_extremum(self, values, indices, dim, "cummax_cpu",
                [](auto x, auto best) { return x >= best; });
}
void cummin_cpu(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  scan_extremum(self, values, indices, dim, "cummin_cpu",
                [](auto x, auto best) { return x <= best; });
}

namespace {
void check_scan_outputs(const Tensor& self, const Tensor& values, const Tensor& indices) {
  TORCH_CHECK(values.sizes() == self.sizes() && indices.sizes() == self.sizes() &&
                  values.is_contiguous() && indices.is_contiguous() &&
                  values.scalar_type() == self.scalar_type() && indices.scalar_type() == kLong,
              "values and indices must be contiguous tensors of size ", self.sizes(), " and dtype ",
              self.scalar_type(), " and Long");
}
} // namespace

void cummax_helper_cpu(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  check_scan_outputs(self, values, indices);
  cummax_cpu(self, dim, values, indices);
  values.unsafeGetTensorImpl()->bump_version();
  indices.unsafeGetTensorImpl()->bump_version();
}
void cummin_helper_cpu(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  check_scan_outputs(self, values, indices);
  cummin_cpu(self, dim, values, indices);
  values.unsafeGetTensorImpl()->bump_version();
  indices.unsafeGetTensorImpl()->bump_version();
}
#ifndef CRESSET_NO_CUDA
void cummax_helper_cuda(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  check_scan_outputs(self, values, indices);
  cummax_cuda(self, dim, values, indices);
  values.unsafeGetTensorImpl()->bump_version();
  indices.unsafeGetTensorImpl()->bump_version();
}
void cummin_helper_cuda(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  check_scan_outputs(self, values, indices);
  cummin_cuda(self, dim, values, indices);
  values.unsafeGetTensorImpl()->bump_version();
  indices.unsafeGetTensorImpl()->bump_version();
}
#endif
void cummax_helper_meta(const Tensor& self, Tensor& values, Tensor& indices, int64_t /*dim*/) {
  check_scan_outputs(self, values, indices);
  values.unsafeGetTensorImpl()->bump_version();
  indices.unsafeGetTensorImpl()->bump_version();
}
void cummin_helper_meta(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  cummax_helper_meta(self, values, indices, dim);
}

} // namespace at::native

namespace at::meta {
namespace {
void set_scan(OutputBuilder& out, const Tensor& self, int64_t dim,
              std::optional<ScalarType> dtype) {
  native::wrap_dim(dim, self.dim());
  ScalarType result = c10::isIntegralType(self.scalar_type(), true) ? kLong : self.scalar_type();
  if (dtype) {
    native::check_out_dtype(out, 0, *dtype);
    result = *dtype;
  } else if (out.is_out_variant() || out.is_inplace())
    result = out.given(0).scalar_type();
  if (out.is_inplace())
    TORCH_CHECK(result == self.scalar_type(), "Bad in-place call: input tensor dtype ",
                self.scalar_type(), " and output tensor dtype ", result, " should match");
  native::set_like(out, 0, self, result);
}

void set_scan_extremum(OutputBuilder& out, const Tensor& self, int64_t dim) {
  native::wrap_dim(dim, self.dim());
  if (out.is_out_variant())
    TORCH_CHECK(out.given(1).scalar_type() == kLong, "expected scalar_type Long but found ",
                out.given(1).scalar_type());
  native::set_like(out, 0, self, self.scalar_type());
  native::set_like(out, 1, self, kLong);
}
} // namespace

void meta_cumsum(OutputBuilder& out, const Tensor& self, int64_t dim,
                 std::optional<ScalarType> dtype) {
  set_scan(out, self, dim, dtype);
}
void meta_cumprod(OutputBuilder& out, const Tensor& self, int64_t dim,
                  std::optional<ScalarType> dtype) {
  set_scan(out, self, dim, dtype);
}
void meta_logcumsumexp(OutputBuilder& out, const Tensor& self, int64_t dim) {
  TORCH_CHECK(!out.given(0).defined() || out.given(0).scalar_type() == self.scalar_type() ||
                  c10::isIntegralType(self.scalar_type(), true),
              "expected scalar_type ", self.scalar_type(), " but found ",
              out.given(0).defined() ? out.given(0).scalar_type() : self.scalar_type());
  native::wrap_dim(dim, self.dim());
  out.set(0, self.sizes(), self.scalar_type());
}
void meta_cummax(OutputBuilder& out, const Tensor& self, int64_t dim) {
  set_scan_extremum(out, self, dim);
}
void meta_cummin(OutputBuilder& out, const Tensor& self, int64_t dim) {
  set_scan_extremum(out, self, dim);
}

} // namespace at::meta
