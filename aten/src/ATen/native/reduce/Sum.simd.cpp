// sum, nansum and prod. Integers and bool accumulate in 64 bits, Half and BFloat16 in float.
#include <ATen/native/reduce/Fold.h>

namespace at::native::reduce {
namespace CRESSET_ISA {
namespace {

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

} // namespace

void fill_sum(ReduceTable& table) {
  fill_fold<Sum>(table, ReduceOp::Sum, AllTypesAndBool{});
  fill_fold<NanSum>(table, ReduceOp::NanSum, FloatingTypes{});
  fill_fold<Prod>(table, ReduceOp::Prod, AllTypesAndBool{});
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
