// Bit operations on integers and bool. Shifts are defined for every count: by the width or more, or
// by a negative count, a left shift gives 0 and a right shift the sign.
#pragma once

#include <type_traits>

#include <ATen/vec/ValueMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

struct BitwiseAnd {
  template <class V> CRESSET_FN V apply(V a, V b) { return a & b; }
};
struct BitwiseOr {
  template <class V> CRESSET_FN V apply(V a, V b) { return a | b; }
};
struct BitwiseXor {
  template <class V> CRESSET_FN V apply(V a, V b) { return a ^ b; }
};
struct BitwiseNot {
  template <class V> CRESSET_FN V apply(V x) {
    if constexpr (std::is_same_v<V, bool>) {
      return !x;
    } else {
      return ~x;
    }
  }
};

namespace detail {
// Whether a register's counts are below the width of its elements, and not negative.
template <class V> CRESSET_FN auto is_shift(V count) {
  using T = vm::element_t<V>;
  return (count >= V(T(0))) & (count < V(static_cast<T>(sizeof(T) * 8)));
}
} // namespace detail

struct LeftShift {
  template <class V> CRESSET_FN V apply(V a, V count) {
    using T = vm::element_t<V>;
    if constexpr (vm::is_vec_v<V>) {
      const auto fits = detail::is_shift(count);
      return vm::select(fits, a << vm::select(fits, count, V(T(0))), V(T(0)));
    } else {
      using U = std::make_unsigned_t<T>;
      return static_cast<U>(count) >= sizeof(T) * 8
                 ? T(0)
                 : static_cast<T>(static_cast<unsigned long>(a) << static_cast<U>(count));
    }
  }
};
struct RightShift {
  template <class V> CRESSET_FN V apply(V a, V count) {
    using T = vm::element_t<V>;
    const unsigned width = sizeof(T) * 8;
    if constexpr (vm::is_vec_v<V>) {
      const auto fits = detail::is_shift(count);
      const V shifted = a >> vm::select(fits, count, V(static_cast<T>(width - 1)));
      return std::is_signed_v<T> ? shifted : vm::select(fits, shifted, V(T(0)));
    } else {
      using U = std::make_unsigned_t<T>;
      if (static_cast<U>(count) >= width) {
        return a < T(0) ? static_cast<T>(-1) : T(0);
      }
      return static_cast<T>(a >> static_cast<U>(count));
    }
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
