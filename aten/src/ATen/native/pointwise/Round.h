// Rounding. round goes to the nearest even integer; integers pass through unchanged.
#pragma once

#include <ATen/vec/ValueMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

namespace detail {
template <class V, class F> CRESSET_FN V if_floating(V x, F f) {
  if constexpr (vm::is_floating_v<vm::element_t<V>>) {
    return f(x);
  } else {
    return x;
  }
}
} // namespace detail

struct Floor {
  template <class V> CRESSET_FN V apply(V x) {
    return detail::if_floating(x, [](auto a) { return vm::floor(a); });
  }
};
struct Ceil {
  template <class V> CRESSET_FN V apply(V x) {
    return detail::if_floating(x, [](auto a) { return vm::ceil(a); });
  }
};
struct Trunc {
  template <class V> CRESSET_FN V apply(V x) {
    return detail::if_floating(x, [](auto a) { return vm::trunc(a); });
  }
};
struct Round {
  template <class V> CRESSET_FN V apply(V x) {
    return detail::if_floating(x, [](auto a) { return vm::round_even(a); });
  }
};
struct Frac {
  template <class V> CRESSET_FN V apply(V x) { return x - vm::trunc(x); }
};
// Two functors for the two signs of `decimals`, because dividing by a power of ten is exact where
// multiplying by its inverse is not. scale = 10^|decimals|.
struct RoundDecimalsUp {
  template <class V> CRESSET_FN V apply(V x, V scale) { return vm::round_even(x * scale) / scale; }
};
struct RoundDecimalsDown {
  template <class V> CRESSET_FN V apply(V x, V scale) { return vm::round_even(x / scale) * scale; }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
