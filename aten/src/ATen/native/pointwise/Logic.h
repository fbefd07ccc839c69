// Logical operations: any type in (non-zero is true, NaN included), bool out.
#pragma once

#include <ATen/vec/ValueMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

namespace detail {
template <class V> CRESSET_FN auto truth(V x) { return x != V(vm::element_t<V>(0)); }
} // namespace detail

struct LogicalAnd {
  template <class V> CRESSET_FN auto apply(V a, V b) { return detail::truth(a) & detail::truth(b); }
};
struct LogicalOr {
  template <class V> CRESSET_FN auto apply(V a, V b) { return detail::truth(a) | detail::truth(b); }
};
struct LogicalXor {
  template <class V> CRESSET_FN auto apply(V a, V b) { return detail::truth(a) ^ detail::truth(b); }
};
struct LogicalNot {
  template <class V> CRESSET_FN auto apply(V x) { return !detail::truth(x); }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
