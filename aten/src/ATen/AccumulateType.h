// The type in which sums of T are kept: wider than T, and less wide on devices, where double
// precision is slow.
#pragma once
#include <cstdint>
#include <type_traits>

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

namespace at {
namespace detail {

template <class T, bool kOnDevice> struct SumType {
  using type = std::conditional_t<
      std::is_same_v<T, bool>, bool,
      std::conditional_t<
          std::is_integral_v<T>, int64_t,
          std::conditional_t<std::is_same_v<T, double> || !kOnDevice, double, float>>>;
};
// On the host half precision adds up in single precision.
template <> struct SumType<c10::Half, false> { using type = float; };
template <> struct SumType<c10::BFloat16, false> { using type = float; };
template <class T, bool kOnDevice> struct SumType<c10::complex<T>, kOnDevice> {
  using type = c10::complex<typename SumType<T, kOnDevice>::type>;
};

} // namespace detail

template <class T, bool is_cuda> using acc_type = typename detail::SumType<T, is_cuda>::type;

} // namespace at
