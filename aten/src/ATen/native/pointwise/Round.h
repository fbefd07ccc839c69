// Rounding. round goes to the nearest even integer; integers pass through the others unchanged, which
// their shape functions arrange, so these are for floating types.
#pragma once

#include <ATen/vec/ValueMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

struct Floor {
  template <class V>
  CRESSET_FN V apply(V x) {
    return vm::floor(x);
  }
};
struct Ceil {
  template <class V>
  CRESSET_FN V apply(V x) {
    return vm::ceil(x);
  }
};
struct Trunc {
  template <class V>
  CRESSET_FN V apply(V x) {
    return vm::trunc(x);
  }
};
struct Round {
  template <class V>
  CRESSET_FN V apply(V x) {
    return vm::round_even(x);
  }
};
struct Frac {
  template <class V>
  CRESSET_FN V apply(V x) {
    return x - vm::trunc(x);
  }
};
// Two functors for the two signs of `decimals`, because dividing by a power of ten is exact where
// multiplying by its inverse is not. scale = 10^|decimals|.
struct RoundDecimalsUp {
  template <class V>
  CRESSET_FN V apply(V x, V scale) {
    return vm::round_even(x * scale) / scale;
  }
};
struct RoundDecimalsDown {
  template <class V>
  CRESSET_FN V apply(V x, V scale) {
    return vm::round_even(x / scale) * scale;
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
