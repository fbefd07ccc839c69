// Everything functors may call: namespace vm for scalars and registers.
#pragma once

#include <ATen/vec/ScalarMath.h>
#include <ATen/vec/VecExp.h>
#include <ATen/vec/VecLog.h>
#include <ATen/vec/VecTrig.h>

// How a functor declares apply: always part of the loop that calls it.
#define CRESSET_FN CRESSET_HD __attribute__((always_inline)) static inline

namespace at::vm {
inline namespace CRESSET_ISA {

// a * b + c, with one rounding for real floating numbers.
template <class V> C10_ALWAYS_INLINE V muladd(V a, V b, V c) {
  if constexpr (is_floating_v<element_t<V>>) {
    return vm::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

} // namespace CRESSET_ISA
} // namespace at::vm
