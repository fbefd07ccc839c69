// The operations of reductions whose accumulator is one number, for the CPU's loops (Fold.h) and
// the GPU's kernels (ATen/cuda/device/Reduce.cuh) alike. Fold.h says what an operation consists of.
#pragma once

#include <type_traits>

#include <ATen/vec/ValueMath.h>

namespace at::native::reduce {
namespace CRESSET_ISA {

// ---- sums and products: integers and bool accumulate in 64 bits, Half and BFloat16 in float
template <class T> struct SumAcc {
  using type = std::conditional_t<std::is_integral_v<T>, int64_t, vec::opmath_t<T>>;
};

struct Sum {
  template <class T> using acc = typename SumAcc<T>::type;
  template <class A> CRESSET_FN A identity() { return A(0); }
  template <class V> CRESSET_FN V map(V x, V) { return x; }
  template <class V> CRESSET_FN V fold(V a, V b) { return a + b; }
};

struct NanSum : Sum {
  template <class V> CRESSET_FN V map(V x, V) {
    return vm::select(x != x, V(vec::element_t<V>(0)), x);
  }
};

struct Prod : Sum {
  template <class A> CRESSET_FN A identity() { return A(1); }
  template <class V> CRESSET_FN V fold(V a, V b) { return a * b; }
};

// ---- maximum and minimum: a NaN wins over everything
struct MaxOp {
  template <class T> using acc = vec::opmath_t<T>;
  template <class A> CRESSET_FN A identity() {
    if constexpr (vm::is_floating_v<A>)
      return -c10::numeric_limits<A>::infinity();
    else
      return c10::numeric_limits<A>::lowest();
  }
  template <class V> CRESSET_FN V map(V x, V) { return x; }
  template <class V> CRESSET_FN V fold(V a, V b) {
    if constexpr (vm::is_floating_v<vec::element_t<V>>)
      return vm::select((b > a) | (b != b), b, a);
    else
      return vm::select(b > a, b, a);
  }
  template <class V> CRESSET_FN V fold_ordered(V a, V b) { return vm::select(b > a, b, a); }
};

struct MinOp : MaxOp {
  template <class V> CRESSET_FN V fold_ordered(V a, V b) { return vm::select(b < a, b, a); }
  template <class A> CRESSET_FN A identity() {
    if constexpr (vm::is_floating_v<A>)
      return c10::numeric_limits<A>::infinity();
    else
      return c10::numeric_limits<A>::max();
  }
  template <class V> CRESSET_FN V fold(V a, V b) {
    if constexpr (vm::is_floating_v<vec::element_t<V>>)
      return vm::select((b < a) | (b != b), b, a);
    else
      return vm::select(b < a, b, a);
  }
};

// ---- norms: complex elements enter by their modulus, so the accumulators are real
struct AbsSum {
  template <class T> using acc = c10::real_type_t<vec::opmath_t<T>>;
  template <class A> CRESSET_FN A identity() { return A(0); }
  template <class V> CRESSET_FN V map(V x, V) { return vm::abs(x); }
  template <class A> CRESSET_FN A map_complex(c10::complex<A> z, A) {
    return vm::hypot(z.real_, z.imag_);
  }
  template <class V> CRESSET_FN V fold(V a, V b) { return a + b; }
};

struct SquareSum : AbsSum {
  template <class V> CRESSET_FN V map(V x, V) { return x * x; }
  template <class A> CRESSET_FN A map_complex(c10::complex<A> z, A) {
    return z.real_ * z.real_ + z.imag_ * z.imag_;
  }
};

struct AbsPowSum : AbsSum {
  template <class V> CRESSET_FN V map(V x, V p) { return vm::pow(vm::abs(x), p); }
  template <class A> CRESSET_FN A map_complex(c10::complex<A> z, A p) {
    return vm::pow(vm::hypot(z.real_, z.imag_), p);
  }
};

struct AbsMax : AbsSum {
  template <class V> CRESSET_FN V fold(V a, V b) { return MaxOp::fold(a, b); }
  template <class V> CRESSET_FN V fold_ordered(V a, V b) { return MaxOp::fold_ordered(a, b); }
};
struct AbsMin : AbsSum {
  template <class A> CRESSET_FN A identity() { return c10::numeric_limits<A>::infinity(); }
  template <class V> CRESSET_FN V fold(V a, V b) { return MinOp::fold(a, b); }
  template <class V> CRESSET_FN V fold_ordered(V a, V b) { return MinOp::fold_ordered(a, b); }
};

} // namespace CRESSET_ISA
} // namespace at::native::reduce
