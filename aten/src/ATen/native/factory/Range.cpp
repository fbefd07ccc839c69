// Factories with computed contents: arange, linspace, logspace, eye and triangle indices.
#include <cmath>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/factory/Native.h>
#include <ATen/native/factory/RangeKernel.h>
#include <ATen/ops/empty.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

namespace at::native {
namespace {
constexpr int64_t kGrain = 32768;

// Makes `out` what a function of the index says; `make(tag)` gives the function for a dtype.
template <class List, class F>
void fill_by_index(const Tensor& out, const char* name, const F& make) {
  if (out.is_meta() || out.numel() == 0) return;
  dtype_switch<List>(out.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out.data_ptr());
    const auto value_of = make(tag);
    parallel_for(0, out.numel(), kGrain, [data, value_of](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = value_of(i);
    });
  });
}

// True when `out` is on a device that fills itself.
bool filled_on_device(const Tensor& out, const RangeArgs& args) {
#ifndef CRESSET_NO_CUDA
  if (out.is_cuda()) {
    fill_range_cuda(out, args);
    return true;
  }
#endif
  static_cast<void>(args);
  return out.is_meta();
}

Tensor options_empty(IntArrayRef size, std::optional<ScalarType> dtype,
                     std::optional<Layout> layout, std::optional<Device> device,
                     std::optional<bool> pin_memory) {
  return at::empty(size, dtype, layout, device, pin_memory, std::nullopt);
}

bool all_integral(const Scalar& a, const Scalar& b, const Scalar& c) {
  return a.isIntegral(true) && b.isIntegral(true) && c.isIntegral(true);
}

int64_t range_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  const double s = start.toDouble(), e = end.toDouble(), d = step.toDouble();
  TORCH_CHECK(d != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(s) && std::isfinite(e), "unsupported range: ", s, " -> ", e);
  TORCH_CHECK((d > 0 && e >= s) || (d < 0 && e <= s),
              "upper bound and lower bound inconsistent with step sign");
  if (all_integral(start, end, step)) {
    const __int128 span = static_cast<__int128>(end.toLong()) - start.toLong();
    const int64_t by = step.toLong();
    return static_cast<int64_t>((span + by - (by > 0 ? 1 : -1)) / by);
  }
  const double length = std::ceil((e - s) / d);
  TORCH_CHECK(length >= 0 && length <= 9.2e18, "invalid size, possible overflow?");
  return static_cast<int64_t>(length);
}
} // namespace

// ---- arange -----------------------------------------------------------------------------------
namespace {
SymInt whole(const Scalar& s) {
  return s.is_symbolic() ? SymInt::from_raw(s.symbolic_raw()) : SymInt(s.toLong());
}
bool is_symbolic_range(const Scalar& start, const Scalar& end, const Scalar& step,
                       const std::optional<Device>& device) {
  return C10_UNLIKELY(start.is_symbolic() || end.is_symbolic()) && !step.is_symbolic() &&
         all_integral(start, end, step) && device && device->is_meta();
}
// A range without memory whose length is a symbol.
Tensor symbolic_arange(const Scalar& start, const Scalar& end, int64_t step, ScalarType dtype,
                       Device device) {
  TORCH_CHECK_VALUE(step != 0, "step must be nonzero");
  const SymInt span = step > 0 ? whole(end) - whole(start) : whole(start) - whole(end);
  TORCH_CHECK_VALUE(c10::expect_true(c10::sym_ge(span, 0)),
                    "upper bound and lower bound inconsistent with step sign");
  const int64_t length = step > 0 ? step : -step;
  return detail::empty_symint((span + (length - 1)) / length, dtype, device);
}
} // namespace

Tensor arange_start_step(const Scalar& start, const Scalar& end, const Scalar& step,
                         std::optional<ScalarType> dtype, std::optional<Layout> layout,
                         std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!start.isComplex() && !end.isComplex() && !step.isComplex(),
              "arange is not implemented for complex numbers");
  const ScalarType type = dtype                            ? *dtype
                          : all_integral(start, end, step) ? kLong
                                                           : c10::get_default_dtype();
  if (is_symbolic_range(start, end, step, device))
    return symbolic_arange(start, end, step.toLong(), type, *device);
  // Counting in int64 is exact: fractional bounds are truncated before they are counted with.
  if (type == kLong && !all_integral(start, end, step) && std::isfinite(start.toDouble()) &&
      std::isfinite(end.toDouble())) {
    TORCH_CHECK_VALUE(step.toLong() != 0, "step must be nonzero: ", step, " is 0 as an integer");
    return arange_start_step(start.toLong(), end.toLong(), step.toLong(), dtype, layout, device,
                             pin_memory);
  }
  const int64_t n = range_length(start, end, step);
  Tensor out = options_empty({n}, type, layout, device, pin_memory);
  RangeArgs args;
  const bool counts = all_integral(start, end, step);
  if (counts || c10::isIntegralType(type, true)) {
    args.kind = RangeArgs::Whole;
    args.first = counts ? start.toLong() : static_cast<int64_t>(start.toDouble());
    args.by = counts ? step.toLong() : static_cast<int64_t>(step.toDouble());
  }
  if (!c10::isIntegralType(type, true)) {
    args.kind = RangeArgs::Floating;
    args.start = start.toDouble();
    args.step = step.toDouble();
  }
  if (filled_on_device(out, args)) return out;
  fill_by_index<RealTypes>(out, "arange_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Whole numbers count exactly; floating ranges are start + i * step in double, rounded once.
    if constexpr (std::is_integral_v<T>)
      return [args](int64_t i) { return static_cast<T>(args.first + i * args.by); };
    else
      return [args](int64_t i) {
        return static_cast<T>(args.start + args.step * static_cast<double>(i));
      };
  });
  return out;
}
Tensor arange_start(const Scalar& start, const Scalar& end, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  return arange_start_step(start, end, 1, dtype, layout, device, pin_memory);
}
Tensor arange_end(const Scalar& end, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory) {
  return arange_start_step(0, end, 1, dtype, layout, device, pin_memory);
}
Tensor range_step(const Scalar& start, const Scalar& end, const Scalar& step,
                  std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_WARN("torch.range is deprecated and will be removed in a future release because its "
             "behavior is inconsistent with Python's range builtin. Instead, use torch.arange, "
             "which produces values in [start, end).");
  const double s = start.toDouble(), e = end.toDouble(), d = step.toDouble();
  TORCH_CHECK(d != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(s) && std::isfinite(e), "unsupported range: ", s, " -> ", e);
  TORCH_CHECK((d > 0 && e >= s) || (d < 0 && e <= s),
              "upper bound and lower bound inconsistent with step sign");
  const double length = std::floor((e - s) / d) + 1;
  TORCH_CHECK(length <= 9.2e18, "invalid size, possible overflow?");
  Tensor out = options_empty({static_cast<int64_t>(length)}, dtype, layout, device, pin_memory);
  RangeArgs args;
  args.kind = RangeArgs::Floating;
  args.start = s;
  args.step = d;
  if (filled_on_device(out, args)) return out;
  fill_by_index<RealTypes>(out, "range_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    return [s, d](int64_t i) {
      const double value = s + d * static_cast<double>(i);
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<int64_t>(value));
      else
        return static_cast<T>(value);
    };
  });
  return out;
}

// ---- linspace and logspace
// ------------------------------------------------------------------------
namespace {
ScalarType space_dtype(const Scalar& start, const Scalar& end, std::optional<ScalarType> dtype,
                       const char* name) {
  if (start.isComplex() || end.isComplex()) {
    TORCH_CHECK(!dtype || c10::isComplexType(*dtype), name, "(): inferred dtype ",
                c10::get_default_complex_dtype(), " can't be safely cast to passed dtype ",
                dtype ? *dtype : kFloat);
    return dtype ? *dtype : c10::get_default_complex_dtype();
  }
  return dtype ? *dtype : c10::get_default_dtype();
}

// The type in which positions are computed: the element's own, float for narrow floats, double for
// integers.
template <class T> struct SpaceMath { using type = T; };
template <> struct SpaceMath<c10::Half> { using type = float; };
template <> struct SpaceMath<c10::BFloat16> { using type = float; };
template <class T> using space_t =
    std::conditional_t<std::is_integral_v<T>, double, typename SpaceMath<T>::type>;

// A bound as the computation sees it: integer results start from bounds that are elements.
template <class T> space_t<T> bound_as(const Scalar& s) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<space_t<T>>(s.to<T>());
  else
    return s.to<space_t<T>>();
}

using SpaceTypes = Concat<RealTypes, ComplexTypes>::type;

// The bounds have to be elements of the result; a single step is the first of them.
void check_space_bounds(const Tensor& out, const Scalar& start, const Scalar& end,
                        const char* name) {
  if (out.is_meta() || out.numel() == 0) return;
  dtype_switch<SpaceTypes>(out.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    (void)start.to<T>();
    if (out.numel() > 1) (void)end.to<T>();
  });
}

// The function of the index, counted from both ends so that the result is symmetric and ends
// exactly at `end`.
template <class T> auto positions(const Scalar& start, const Scalar& end, int64_t steps) {
  using M = space_t<T>;
  const M first = bound_as<T>(start), last = steps > 1 ? bound_as<T>(end) : first;
  const M step = steps > 1 ? (last - first) / M(static_cast<double>(steps - 1)) : M(0);
  return [=](int64_t i) {
    const bool first_half = i < steps / 2;
    const double count = static_cast<double>(first_half ? i : i + 1 - steps);
    const M from = first_half ? first : last;
    // Rounded once: in double the product of two floats is exact.
    if constexpr (std::is_same_v<M, float>)
      return static_cast<float>(double(from) + double(step) * count);
    else if constexpr (std::is_same_v<M, double>)
      return std::fma(step, count, from);
    else
      return from + step * M(static_cast<typename M::value_type>(count));
  };
}
template <class T, class M> T narrow_to(M v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<int64_t>(v));
  else
    return static_cast<T>(v);
}

template <class M> M power(double base, M exponent) {
  if constexpr (c10::is_complex_v<M>) {
    using R = typename M::value_type;
    const R size = std::pow(static_cast<R>(base), exponent.real_);
    const R angle = exponent.imag_ * std::log(static_cast<R>(base));
    return M(size * std::cos(angle), size * std::sin(angle));
  } else {
    return std::pow(static_cast<M>(base), exponent);
  }
}
RangeArgs space_args(RangeArgs::Kind kind, const Tensor& out, const Scalar& start,
                     const Scalar& end, double base) {
  RangeArgs args;
  args.kind = kind;
  args.base = base;
  const Scalar* ends[] = {&start, &end};
  double* parts[] = {args.from, args.to};
  for (int k = 0; k < 2; ++k) {
    if (ends[k]->isComplex()) {
      const c10::complex<double> z = ends[k]->to<c10::complex<double>>();
      parts[k][0] = z.real_;
      parts[k][1] = z.imag_;
    } else if (c10::isIntegralType(out.scalar_type(), true)) {
      parts[k][0] = static_cast<double>(ends[k]->toLong());
    } else {
      parts[k][0] = ends[k]->toDouble();
    }
  }
  return args;
}
} // namespace

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  Tensor out = options_empty({steps}, space_dtype(start, end, dtype, "torch.linspace"), layout,
                             device, pin_memory);
  check_space_bounds(out, start, end, "linspace_cpu");
  if (filled_on_device(out, space_args(RangeArgs::Linear, out, start, end, 0))) return out;
  fill_by_index<SpaceTypes>(out, "linspace_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto value_of = positions<T>(start, end, steps);
    return [value_of](int64_t i) { return narrow_to<T>(value_of(i)); };
  });
  return out;
}
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base,
                std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  Tensor out = options_empty({steps}, space_dtype(start, end, dtype, "torch.logspace"), layout,
                             device, pin_memory);
  check_space_bounds(out, start, end, "logspace_cpu");
  if (filled_on_device(out, space_args(RangeArgs::Logarithmic, out, start, end, base))) return out;
  fill_by_index<SpaceTypes>(out, "logspace_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto value_of = positions<T>(start, end, steps);
    return
        [value_of, base](int64_t i) { return narrow_to<T>(power<space_t<T>>(base, value_of(i))); };
  });
  return out;
}

namespace {
Scalar bound(const Tensor& t, const char* name, const char* which) {
  TORCH_CHECK(t.dim() == 0, name, " only supports 0-dimensional start and end tensors, but got ",
              which, " with ", t.dim(), " dimension(s).");
  return t.item();
}
} // namespace
#define CRESSET_SPACE_OVERLOADS(Name, ExtraDecl, ExtraUse)                                         \
  Tensor Name##_tt(const Tensor& start, const Tensor& end, int64_t steps ExtraDecl,                \
                   std::optional<ScalarType> dtype, std::optional<Layout> layout,                  \
                   std::optional<Device> device, std::optional<bool> pin_memory) {                 \
    return Name(bound(start, #Name, "start"), bound(end, #Name, "end"), steps ExtraUse, dtype,     \
                layout, device, pin_memory);                                                       \
  }                                                                                                \
  Tensor Name##_ts(const Tensor& start, const Scalar& end, int64_t steps ExtraDecl,                \
                   std::optional<ScalarType> dtype, std::optional<Layout> layout,                  \
                   std::optional<Device> device, std::optional<bool> pin_memory) {                 \
    return Name(bound(start, #Name, "start"), end, steps ExtraUse, dtype, layout, device,          \
                pin_memory);                                                                       \
  }                                                                                                \
  Tensor Name##_st(const Scalar& start, const Tensor& end, int64_t steps ExtraDecl,                \
                   std::optional<ScalarType> dtype, std::optional<Layout> layout,                  \
                   std::optional<Device> device, std::optional<bool> pin_memory) {                 \
    return Name(start, bound(end, #Name, "end"), steps ExtraUse, dtype, layout, device,            \
                pin_memory);                                                                       \
  }
#define CRESSET_NOTHING
#define CRESSET_BASE_DECL , double base
#define CRESSET_BASE_USE , base
CRESSET_SPACE_OVERLOADS(linspace, CRESSET_NOTHING, CRESSET_NOTHING)
CRESSET_SPACE_OVERLOADS(logspace, CRESSET_BASE_DECL, CRESSET_BASE_USE)
#undef CRESSET_SPACE_OVERLOADS
#undef CRESSET_NOTHING
#undef CRESSET_BASE_DECL
#undef CRESSET_BASE_USE

// ---- eye and triangles ------------------------------------------------------------------------
Tensor eye_m(int64_t n, int64_t m, std::optional<ScalarType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  Tensor out = options_empty({n, m}, dtype, layout, device, pin_memory).zero_();
  if (out.is_meta() || std::min(n, m) == 0) return out;
  detail::view_of(out, {std::min(n, m)}, {m + 1}, 0).fill_(1);
  out.unsafeGetTensorImpl()->set_version(0);
  return out;
}
Tensor eye(int64_t n, std::optional<ScalarType> dtype, std::optional<Layout> layout,
           std::optional<Device> device, std::optional<bool> pin_memory) {
  return eye_m(n, n, dtype, layout, device, pin_memory);
}

namespace {
// Columns [first, last) of row `i` that belong to the lower (or upper) triangle.
std::pair<int64_t, int64_t> triangle_row(int64_t i, int64_t col, int64_t offset, bool lower) {
  auto clamp = [&](int64_t v) { return std::max<int64_t>(0, std::min(v, col)); };
  return lower ? std::make_pair(int64_t(0), clamp(i + offset + 1))
               : std::make_pair(clamp(i + offset), col);
}

// The size of the triangle. Rows are empty, then grow by one each, then are full (the upper
// triangle is what the lower one leaves), so no loop over the rows is needed.
int64_t triangle_count(int64_t row, int64_t col, int64_t offset, bool lower) {
  int64_t whole = 0;
  TORCH_CHECK(!c10::mul_overflows(row, col, &whole), "a triangle of ", row, " x ", col,
              " is too large");
  if (row == 0 || col == 0) return 0;
  if (!lower) return whole - triangle_count(row, col, offset - 1, true);
  using Wide = __int128;                            // col - offset may pass 2^63
  const Wide first = std::max<int64_t>(0, -offset); // the first row that is not empty
  if (first >= row) return 0;
  const Wide full =
      std::max(first, std::min(Wide(row), Wide(col) - offset - 1)); // the first full row
  return static_cast<int64_t>((full - first) * (2 * Wide(offset) + first + full + 1) / 2 +
                              (row - full) * col);
}

// Elements begin .. end of the triangle, row by row.
template <class T> void fill_triangle(int64_t row, int64_t col, int64_t offset, bool lower,
                                      int64_t begin, int64_t end, T* rows, T* cols) {
  // The last row that `begin` elements or fewer come before; rows without a column are passed over,
  // for there may be very many.
  int64_t i = 0, above = row;
  while (above - i > 1) {
    const int64_t middle = i + (above - i) / 2;
    (triangle_count(middle, col, offset, lower) <= begin ? i : above) = middle;
  }
  int64_t skip = begin - triangle_count(i, col, offset, lower);
  for (int64_t position = begin; position < end; ++i, skip = 0) {
    const auto [first, last] = triangle_row(i, col, offset, lower);
    const int64_t stop = std::min(last, first + skip + (end - position));
    for (int64_t j = first + skip; j < stop; ++j, ++position) {
      rows[position] = static_cast<T>(i);
      cols[position] = static_cast<T>(j);
    }
  }
}

Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, bool lower,
                        std::optional<ScalarType> dtype, std::optional<Layout> layout,
                        std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(row >= 0, "row must be non-negative, got", row);
  TORCH_CHECK(col >= 0, "col must be non-negative, got", col);
  TORCH_CHECK(!layout || *layout == Layout::Strided, "only support layout=torch.strided, got ",
              *layout);
  TORCH_CHECK(offset > -(int64_t(1) << 40) && offset < (int64_t(1) << 40), "offset ", offset,
              " is too large");
  if (device && device->is_cuda()) {
    const Tensor host =
        triangle_indices(row, col, offset, lower, dtype, layout, Device(kCPU), std::nullopt);
    Tensor out = options_empty(host.sizes(), host.scalar_type(), layout, device, pin_memory);
    out.copy_(host);
    out.unsafeGetTensorImpl()->set_version(0);
    return out;
  }
  const int64_t count = triangle_count(row, col, offset, lower);
  Tensor out = options_empty({2, count}, dtype ? *dtype : kLong, layout, device, pin_memory);
  if (out.is_meta() || count == 0) return out;
  dtype_switch<IntegralTypes>(
      out.scalar_type(), lower ? "tril_indices" : "triu_indices", [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* rows = static_cast<T*>(out.data_ptr());
        parallel_for(0, count, 32768, [&](int64_t begin, int64_t end) {
          serial_for(begin, end, 4, [&](int64_t b, int64_t e) {
            fill_triangle<T>(row, col, offset, lower, b, e, rows, rows + count);
          });
        });
      });
  return out;
}
} // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  return triangle_indices(row, col, offset, true, dtype, layout, device, pin_memory);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  return triangle_indices(row, col, offset, false, dtype, layout, device, pin_memory);
}

} // namespace at::native
