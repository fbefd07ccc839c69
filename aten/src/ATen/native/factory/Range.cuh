// Ranges: each element from its index, as native/factory/Range.cpp computes it on the CPU.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/factory/Range.args.h>
#include <ATen/vec/ValueMath.h>

namespace at::device {

// The type in which positions are computed.
template <class T> struct SpaceMath {
  using type = std::conditional_t<std::is_integral_v<T>, double, opmath_t<T>>;
};
template <class T> using space_t = typename SpaceMath<T>::type;

template <class M> CRESSET_DEVICE_FN M bound_of(const double* parts) {
  if constexpr (c10::is_complex_v<M>)
    return M(static_cast<typename M::value_type>(parts[0]),
             static_cast<typename M::value_type>(parts[1]));
  else
    return static_cast<M>(parts[0]);
}

// Counted from both ends so that the result is symmetric and ends exactly at the end.
template <class M> CRESSET_DEVICE_FN M position(const RangeArgs& a, long i) {
  const M start = bound_of<M>(a.from), end = bound_of<M>(a.to);
  if (a.n == 1) return start;
  const bool first_half = i < a.n / 2;
  const double count = static_cast<double>(first_half ? i : i + 1 - a.n);
  const M from = first_half ? start : end;
  if constexpr (c10::is_complex_v<M>) {
    using R = typename M::value_type;
    const M step = (end - start) / M(static_cast<R>(a.n - 1));
    return from + step * M(static_cast<R>(count));
  } else {
    const M step = (end - start) / static_cast<M>(static_cast<double>(a.n - 1));
    return static_cast<M>(::fma(static_cast<double>(step), count, static_cast<double>(from)));
  }
}
template <class M> CRESSET_DEVICE_FN M power(double base, M exponent) {
  if constexpr (c10::is_complex_v<M>) {
    using R = typename M::value_type;
    const R size = vm::pow(static_cast<R>(base), exponent.real_);
    const R angle = exponent.imag_ * vm::log(static_cast<R>(base));
    return M(size * vm::cos(angle), size * vm::sin(angle));
  } else {
    return vm::pow(static_cast<M>(base), exponent);
  }
}

template <class T> CRESSET_DEVICE_FN void range(const RangeArgs& a) {
  T* out = static_cast<T*>(a.out);
  const long step = static_cast<long>(gridDim.x) * blockDim.x;
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < a.n; i += step) {
    if (a.kind == 0)
      out[i] = convert<T>(a.first + i * a.by);
    else if (a.kind == 1)
      out[i] = convert<T>(::fma(a.step, static_cast<double>(i), a.start));
    else if (a.kind == 2)
      out[i] = convert<T>(position<space_t<T>>(a, i));
    else
      out[i] = convert<T>(power(a.base, position<space_t<T>>(a, i)));
  }
}

} // namespace at::device

#define CRESSET_RANGE(type)                                                                        \
  CRESSET_KERNEL(256) range_##type(const __grid_constant__ at::device::RangeArgs args) {           \
    at::device::range<cresset_##type>(args);                                                       \
  }
CRESSET_RANGE(u8)
CRESSET_RANGE(i8)
CRESSET_RANGE(i16)
CRESSET_RANGE(i32)
CRESSET_RANGE(i64)
CRESSET_RANGE(u16)
CRESSET_RANGE(u32)
CRESSET_RANGE(u64)
CRESSET_RANGE(f16)
CRESSET_RANGE(bf16)
CRESSET_RANGE(f32)
CRESSET_RANGE(f64)
CRESSET_RANGE(c64)
CRESSET_RANGE(c128)
