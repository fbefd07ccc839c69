// Powers of integers for kernels of extensions.
#pragma once
#include <type_traits>

#include <c10/macros/Macros.h>

namespace at::native {

/// base to the power of exponent, modulo 2^bits. A negative exponent gives what is left of the
/// fraction: 1 or -1 for those bases, else 0.
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
C10_HOST_DEVICE inline T powi(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
      return base == T(1) ? T(1) : T(0);
    }
  }
  // Narrow types would be multiplied as int, where a product may overflow.
  using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  U result = 1, square = static_cast<U>(base);
  for (auto left = static_cast<std::make_unsigned_t<T>>(exponent); left != 0; left >>= 1) {
    if (left & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

} // namespace at::native
