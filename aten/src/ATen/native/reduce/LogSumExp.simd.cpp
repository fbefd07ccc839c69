// log(sum(exp(x))) in one pass over memory: each block gives its maximum and the sum of
// exponentials below it, and blocks are rescaled to the larger maximum when they meet. An infinite
// maximum is not subtracted, so that infinities come out as the plain formula gives them.
#include <ATen/native/reduce/Extremum.h>

namespace at::native::reduce {
namespace CRESSET_ISA {
namespace {

template <class A> C10_ALWAYS_INLINE A finite_or_zero(A x) { return x - x == A(0) ? x : A(0); }

struct ExpSum {
  template <class T> using acc = vec::opmath_t<T>;
  template <class A> CRESSET_FN A identity() { return A(0); }
  template <class V> CRESSET_FN V map(V x, V shift) { return vm::exp(x - shift); }
  template <class V> CRESSET_FN V fold(V a, V b) { return a + b; }
};

template <class T> struct LogSumExp {
  using Max = Fold<MaxOp, T>;
  using A = typename Max::A;
  static void leaf(char* acc, const LeafArgs& a) {
    A* top = reinterpret_cast<A*>(acc);
    A* sum = top + a.outputs;
    Max::leaf(acc, a);
    if (a.stride != static_cast<int64_t>(sizeof(T)) &&
        a.output_stride == static_cast<int64_t>(sizeof(T))) {
      columns(top, sum, a);
      return;
    }
    for (int64_t i = 0; i < a.outputs; ++i) {
      const char* in = a.in + i * a.output_stride;
      const A shift = finite_or_zero(top[i]);
      sum[i] = a.stride == static_cast<int64_t>(sizeof(T))
                   ? Fold<ExpSum, T>::row(in, a.count, shift)
                   : Fold<ExpSum, T>::strided(in, a.stride, a.count, shift);
    }
  }
  static void columns(const A* top, A* sum, const LeafArgs& a) {
    using V = vec::Vec<A>;
    int64_t c = 0;
    for (; c + V::kLanes <= a.outputs; c += V::kLanes) {
      const V m = V::load(top + c);
      const V shift = vec::select(m - m == V(A(0)), m, V(A(0)));
      V total(A(0));
      for (int64_t r = 0; r < a.count; ++r)
        total =
            total +
            vm::exp(vec::VecIO<T>::load(a.in + r * a.stride + c * static_cast<int64_t>(sizeof(T))) -
                    shift);
      total.store(sum + c);
    }
    for (; c < a.outputs; ++c)
      sum[c] = Fold<ExpSum, T>::strided(a.in + c * a.output_stride, a.stride, a.count,
                                        finite_or_zero(top[c]));
  }
  static void combine(char* a, const char* b, int64_t outputs) {
    A *top_a = reinterpret_cast<A*>(a), *sum_a = top_a + outputs;
    const A *top_b = reinterpret_cast<const A*>(b), *sum_b = top_b + outputs;
    for (int64_t i = 0; i < outputs; ++i) {
      const A top = MaxOp::fold(top_a[i], top_b[i]);
      const A shift = finite_or_zero(top);
      sum_a[i] = scaled(sum_a[i], finite_or_zero(top_a[i]) - shift) +
                 scaled(sum_b[i], finite_or_zero(top_b[i]) - shift);
      top_a[i] = top;
    }
  }
  C10_ALWAYS_INLINE static A scaled(A sum, A exponent) {
    return sum == A(0) || exponent == A(0) ? sum : sum * vm::exp(exponent);
  }
  static void finish(char* const* value, const char* acc, int64_t outputs, const FinishArgs&) {
    const A* top = reinterpret_cast<const A*>(acc);
    A* out = reinterpret_cast<A*>(value[0]);
    for (int64_t i = 0; i < outputs; ++i)
      out[i] = vm::log(top[outputs + i]) + finite_or_zero(top[i]);
  }
};

template <class... Ts> void fill_types(ReduceTable& table, Types<Ts...>) {
  ((table.kernel[static_cast<int>(ReduceOp::LogSumExp)][static_cast<int>(c10::scalar_type_of<Ts>)] =
        ReduceKernel{&LogSumExp<Ts>::leaf,
                     &LogSumExp<Ts>::combine,
                     &LogSumExp<Ts>::finish,
                     2 * static_cast<int32_t>(sizeof(typename LogSumExp<Ts>::A)),
                     1,
                     {c10::scalar_type_of<typename LogSumExp<Ts>::A>, c10::ScalarType::Undefined}}),
   ...);
}
} // namespace

void fill_logsumexp(ReduceTable& table) { fill_types(table, FloatingTypes{}); }

} // namespace CRESSET_ISA
} // namespace at::native::reduce
