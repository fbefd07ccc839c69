// See Reduction.h.
#include <ATen/native/index/Reduction.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/index/RowLoops.h>

#include <limits>

namespace at::native {

Reduction parse_reduction(std::string_view name) {
  if (name == "sum") return Reduction::Sum;
  if (name == "prod") return Reduction::Prod;
  if (name == "mean") return Reduction::Mean;
  if (name == "amax") return Reduction::Max;
  TORCH_CHECK(name == "amin", "reduce argument must be either sum, prod, mean, amax or amin, got ",
              name);
  return Reduction::Min;
}

Tensor reduction_identity(Reduction kind, ScalarType dtype) {
  if (kind == Reduction::Sum || kind == Reduction::Mean) return detail::scalar_tensor(0, dtype);
  if (kind == Reduction::Prod) return detail::scalar_tensor(1, dtype);
  const bool low = kind == Reduction::Max;
  if (c10::isFloatingType(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return detail::scalar_tensor(low ? -infinity : infinity, dtype);
  }
  Tensor result = detail::empty({}, dtype);
  dtype_switch<IntegralTypesAndBool>(
      dtype,
      low ? "scatter_gather_tensor_cpu_reduce_amax" : "scatter_gather_tensor_cpu_reduce_amin",
      [&](auto tag) {
        using T = typename decltype(tag)::type;
        *result.data_ptr<T>() =
            low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
      });
  return result;
}

RowLoops reduction_loops(Reduction kind, ScalarType dtype, const char* name) {
  RowLoops loops{};
  if (kind == Reduction::Max || kind == Reduction::Min) {
    dtype_switch<RealTypesAndBool>(dtype, name, [&](auto tag) {
      using T = typename decltype(tag)::type;
      loops = kind == Reduction::Max ? combine_loops<T, MaxOp>() : combine_loops<T, MinOp>();
    });
    return loops;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(kind != Reduction::Mean || dtype != kBool, "\"", name,
                              "\" not implemented for 'Bool'");
  if (kind != Reduction::Prod) return add_loops(dtype, name);
  dtype_switch<AllTypesAndBool>(
      dtype, name, [&](auto tag) { loops = combine_loops<typename decltype(tag)::type, MulOp>(); });
  return loops;
}

namespace {

// Quotient rounded down, for integers; count >= 1.
template <class T> T divide_by_count(T value, int64_t count) {
  using C = typename Computed<T>::type;
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      const int64_t v = static_cast<int64_t>(value);
      const int64_t q = v / count;
      return static_cast<T>(v % count < 0 ? q - 1 : q);
    } else {
      return static_cast<T>(static_cast<uint64_t>(value) / static_cast<uint64_t>(count));
    }
  } else if constexpr (c10::is_complex_v<C>) {
    using R = typename C::value_type;
    return static_cast<T>(load_computed(value) / C(static_cast<R>(count), R(0)));
  } else {
    return static_cast<T>(load_computed(value) / static_cast<C>(count));
  }
}

} // namespace

void divide_by_counts(const Tensor& self, const Tensor& counts) {
  TensorIterator iter(self.sizes());
  iter.add_output(self);
  iter.add_input(counts);
  iter.build();
  dtype_switch<AllTypes>(
      self.scalar_type(), "scatter_gather_tensor_cpu_reduce_mean", [&](auto tag) {
        using T = typename decltype(tag)::type;
        iter.for_each([](char* const* data, const int64_t* strides, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            T& value = *reinterpret_cast<T*>(data[0] + i * strides[0]);
            const int64_t count = *reinterpret_cast<const int64_t*>(data[1] + i * strides[1]);
            if (count > 1) value = divide_by_count(value, count);
          }
        });
      });
}

} // namespace at::native
