// Clamping. NaN in the value or in a bound gives NaN; where low > high the result is high.
#pragma once

#include <ATen/native/pointwise/Compare.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

// Bounds as tensors, or numbers of which one is NaN.
struct Clamp {
  template <class V> CRESSET_FN V apply(V x, V low, V high) {
    return Minimum::apply(Maximum::apply(x, low), high);
  }
};
struct ClampMin {
  template <class V> CRESSET_FN V apply(V x, V low) { return Maximum::apply(x, low); }
};
struct ClampMax {
  template <class V> CRESSET_FN V apply(V x, V high) { return Minimum::apply(x, high); }
};

// Numbers that are not NaN: one instruction for each bound. A value that equals a bound stays as it
// is, the sign of a zero too.
struct ClampMinNumber {
  template <class V> CRESSET_FN V apply(V x, V low) { return vm::select(low > x, low, x); }
};
struct ClampMaxNumber {
  template <class V> CRESSET_FN V apply(V x, V high) { return vm::select(high < x, high, x); }
};
struct ClampNumbers {
  template <class V> CRESSET_FN V apply(V x, V low, V high) {
    return ClampMaxNumber::apply(ClampMinNumber::apply(x, low), high);
  }
};

struct NanToNum {
  template <class V> CRESSET_FN V apply(V x, V nan, V posinf, V neginf) {
    if constexpr (vm::is_complex_v<V>) {
      return V(apply(x.real_, nan.real_, posinf.real_, neginf.real_),
               apply(x.imag_, nan.real_, posinf.real_, neginf.real_));
    } else if constexpr (!vm::is_floating_v<vm::element_t<V>>) {
      return x;
    } else {
      const V inf(c10::numeric_limits<vm::element_t<V>>::infinity());
      V r = vm::select(vm::isnan(x), nan, x);
      r = vm::select(x == inf, posinf, r);
      return vm::select(x == -inf, neginf, r);
    }
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
