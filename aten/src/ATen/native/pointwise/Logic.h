// Logical operations: any type in (non-zero is true, NaN included), bool out.
#pragma once

#include <ATen/vec/ValueMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

namespace detail {
template <class V> CRESSET_FN auto truth(V x) {
  if constexpr (vm::is_complex_v<V>) {
    using R = vm::element_of_complex_t<V>;
    return (x.real_ != R(0.0f)) | (x.imag_ != R(0.0f));
  } else {
    return x != V(vm::element_t<V>(0));
  }
}
} // namespace detail

struct LogicalAnd {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN auto apply(V a, V b) { return detail::truth(a) & detail::truth(b); }
};
struct LogicalOr {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN auto apply(V a, V b) { return detail::truth(a) | detail::truth(b); }
};
struct LogicalXor {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN auto apply(V a, V b) { return detail::truth(a) ^ detail::truth(b); }
};
struct LogicalNot {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN auto apply(V x) { return !detail::truth(x); }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
