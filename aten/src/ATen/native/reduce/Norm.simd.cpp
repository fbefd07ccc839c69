// The sums and extremes behind vector norms: |x|, x^2, |x|^p. Complex elements enter by their
// modulus, so the accumulators are real.
#include <ATen/native/reduce/Extremum.h>

namespace at::native::reduce {
namespace CRESSET_ISA {
namespace {

template <class T> using real_acc = c10::real_type_t<vec::opmath_t<T>>;

struct AbsSum {
  template <class T> using acc = real_acc<T>;
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

} // namespace

void fill_norm(ReduceTable& table) {
  using Inputs = Concat<FloatingTypes, AllComplexTypes>::type;
  fill_fold<AbsSum>(table, ReduceOp::AbsSum, Inputs{});
  fill_fold<SquareSum>(table, ReduceOp::SquareSum, Inputs{});
  fill_fold<AbsPowSum>(table, ReduceOp::AbsPowSum, Inputs{});
  fill_fold<AbsMax>(table, ReduceOp::AbsMax, Inputs{});
  fill_fold<AbsMin>(table, ReduceOp::AbsMin, Inputs{});
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
