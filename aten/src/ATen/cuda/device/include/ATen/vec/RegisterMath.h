// Namespace vm::reg on the device, where there are no registers of several numbers: vm's functions.
#pragma once

#include <ATen/vec/ValueMath.h>

namespace at::vm {
inline namespace CRESSET_ISA {
namespace reg {

using vm::atan2;
using vm::atanh;
using vm::cosh;
using vm::erfc;
using vm::exp;
using vm::log2;
using vm::magnitude;
using vm::nextafter;
using vm::pow;
using vm::reciprocal;
using vm::sinh;
using vm::tan;

CRESSET_VM bool any(bool condition) { return condition; }
template <class F> CRESSET_VM float in_double(float x, F f) {
  return static_cast<float>(f(static_cast<double>(x)));
}
template <class F> CRESSET_VM double in_double(double x, F f) { return f(x); }
template <class V> CRESSET_VM V divide(V a, V b) { return a / b; }

} // namespace reg
} // namespace CRESSET_ISA
} // namespace at::vm
