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

// Scalar loops: the machine has no vector shift for 8-bit lanes and the counts need checking
// anyway.
struct LeftShift {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T a, T count) {
    using U = std::make_unsigned_t<T>;
    return static_cast<U>(count) >= sizeof(T) * 8
               ? T(0)
               : static_cast<T>(static_cast<unsigned long>(a) << static_cast<U>(count));
  }
};
struct RightShift {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T a, T count) {
    using U = std::make_unsigned_t<T>;
    const unsigned width = sizeof(T) * 8;
    if (static_cast<U>(count) >= width) {
      return a < T(0) ? static_cast<T>(-1) : T(0);
    }
    return static_cast<T>(a >> static_cast<U>(count));
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
