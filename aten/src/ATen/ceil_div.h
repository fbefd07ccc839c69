// Divisions that round up, as launches of kernels need them.
#pragma once
#include <c10/macros/Macros.h>

namespace at {

// a / b rounded up, for a >= 0 and b > 0. The sum a + b - 1, which may be too large, is not made.
template <class T> C10_HOST_DEVICE constexpr T ceil_div(T a, T b) {
  return a / b + static_cast<T>(a % b != 0);
}
// The first multiple of b that is not below a.
template <class T> C10_HOST_DEVICE constexpr T round_up(T a, T b) { return ceil_div(a, b) * b; }

} // namespace at
