// softmax and log_softmax along contiguous lines and along lines that lie side by side, and their
// backward passes. A line is read three times while it is in the cache: maximum, exponentials and
// their sum, result. Half and BFloat16 compute in float.
#include <ATen/native/reduce/Extremum.h>
#include <ATen/native/reduce/SoftmaxKernel.h>

namespace at::native::softmax_loops {
namespace CRESSET_ISA {
namespace {

using reduce::CRESSET_ISA::Fold;
using reduce::CRESSET_ISA::load_as;
using reduce::CRESSET_ISA::MaxOp;

struct SumOp {
  template <class T> using acc = vec::opmath_t<T>;
  template <class A> CRESSET_FN A identity() { return A(0); }
  template <class V> CRESSET_FN V map(V x, V) { return x; }
  template <class V> CRESSET_FN V fold(V a, V b) { return a + b; }
};
struct ExpSumOp : SumOp {
  template <class V> CRESSET_FN V map(V x, V shift) { return vm::exp(x - shift); }
};

template <class T, class A> C10_ALWAYS_INLINE void store_as(char* p, A value) {
  const T element = static_cast<T>(value);
  __builtin_memcpy(p, &element, sizeof(T));
}

// ---- parts of registers
// The first n of a register's lanes in memory, by masks: without them a short line is faster on
// scalars, as copying it into a register's worth of memory stalls the load that follows.
#if defined(__AVX512F__) && !defined(__clang__)
template <class T> constexpr bool kPartial = std::is_same_v<T, float> || std::is_same_v<T, double>;
C10_ALWAYS_INLINE uint16_t first_lanes(int64_t n) { return static_cast<uint16_t>((1u << n) - 1); }
C10_ALWAYS_INLINE vec::Vec<float> load_first(const char* p, int64_t n, vec::Vec<float> rest) {
  return __builtin_ia32_loadups512_mask(reinterpret_cast<const float*>(p), rest.v, first_lanes(n));
}
C10_ALWAYS_INLINE vec::Vec<double> load_first(const char* p, int64_t n, vec::Vec<double> rest) {
  return __builtin_ia32_loadupd512_mask(reinterpret_cast<const double*>(p), rest.v,
                                        static_cast<uint8_t>(first_lanes(n)));
}
C10_ALWAYS_INLINE void store_first(char* p, vec::Vec<float> x, int64_t n) {
  __builtin_ia32_storeups512_mask(reinterpret_cast<float*>(p), x.v, first_lanes(n));
}
C10_ALWAYS_INLINE void store_first(char* p, vec::Vec<double> x, int64_t n) {
  __builtin_ia32_storeupd512_mask(reinterpret_cast<double*>(p), x.v,
                                  static_cast<uint8_t>(first_lanes(n)));
}
// The numbers of the lanes with bit k turned over, and as they are in the last row. A table:
// the compiler would build the numbers lane by lane at run time.
template <class T> struct LaneNumbers {
  static constexpr int kLanes = vec::Vec<T>::kLanes, kBits = kLanes == 16 ? 4 : 3;
  alignas(64) vec::int_of<T> row[kBits + 1][kLanes] = {};
  constexpr LaneNumbers() {
    for (int k = 0; k <= kBits; ++k)
      for (int i = 0; i < kLanes; ++i) row[k][i] = k < kBits ? i ^ (1 << k) : i;
  }
};
template <class T> inline constexpr LaneNumbers<T> kLaneNumbers{};

template <class T> C10_ALWAYS_INLINE vec::Mask<T> lanes_below(int64_t n) {
  using Raw = typename vec::Mask<T>::Raw;
  Raw number;
  __builtin_memcpy(&number, kLaneNumbers<T>.row[LaneNumbers<T>::kBits], sizeof(number));
  return {(Raw)(number < static_cast<vec::int_of<T>>(n))};
}

// The fold of all lanes, in every lane: each step combines lanes whose numbers differ in one bit.
template <class Op, class T> C10_ALWAYS_INLINE vec::Vec<T> all_lanes(vec::Vec<T> x) {
#pragma GCC unroll 4
  for (int k = 0; k < LaneNumbers<T>::kBits; ++k) {
    typename vec::Mask<T>::Raw other;
    __builtin_memcpy(&other, kLaneNumbers<T>.row[k], sizeof(other));
    x = Op::fold(x, vec::Vec<T>(__builtin_shuffle(x.v, other)));
  }
  return x;
}

// A line that fits into a register stays there from the maximum to the result. Lanes behind its
// end are -inf for the maximum and 0 for the exponential, which is slow where it underflows.
template <class T, bool kLog> void short_line(const char* in, char* out, int64_t n) {
  using V = vec::Vec<T>;
  const V x = load_first(in, n, V(-c10::numeric_limits<T>::infinity()));
  const vec::Mask<T> inside = lanes_below<T>(n);
  const V shifted = vm::select(inside, x - all_lanes<MaxOp>(x), V(T(0)));
  const V e = vm::select(inside, vm::exp(shifted), V(T(0)));
  const V sum = all_lanes<SumOp>(e);
  store_first(out, kLog ? shifted - vm::log(sum) : e / sum, n);
}
#else
template <class T> constexpr bool kPartial = false;
template <class T, bool kLog> void short_line(const char* in, char* out, int64_t n);
#endif

template <class T, bool kLog> struct Softmax {
  using A = vec::opmath_t<T>;
  using V = vec::Vec<A>;
  using IO = vec::VecIO<T>;
  static constexpr int64_t kLanes = V::kLanes;
  static constexpr int64_t kSize = sizeof(T);

  // f on registers and, for the rest, on scalars, from `in` of type From to `out` of type T.
  template <class From, class F>
  C10_ALWAYS_INLINE static void transform(const char* in, char* out, int64_t n, F f) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      IO::store(out + i * kSize,
                f(vec::VecIO<From>::load(in + i * static_cast<int64_t>(sizeof(From)))));
    for (; i < n; ++i)
      store_as<T>(out + i * kSize,
                  f(load_as<From, A>(in + i * static_cast<int64_t>(sizeof(From)))));
  }

  // Exponentials into scratch; their sum.
  static A exponentials(const char* in, char* scratch, int64_t n, A top) {
    constexpr int64_t step = sizeof(A);
    const V shift(top);
    V sum[2] = {V(A(0)), V(A(0))};
    int64_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      const V a = vm::exp(IO::load(in + i * kSize) - shift);
      const V b = vm::exp(IO::load(in + (i + kLanes) * kSize) - shift);
      a.store(scratch + i * step);
      b.store(scratch + (i + kLanes) * step);
      sum[0] = sum[0] + a;
      sum[1] = sum[1] + b;
    }
    A total = Fold<SumOp, A>::lanes_fold(sum[0] + sum[1]);
    for (; i < n; ++i) {
      const A e = vm::exp(load_as<T, A>(in + i * kSize) - top);
      __builtin_memcpy(scratch + i * step, &e, sizeof(A));
      total += e;
    }
    return total;
  }

  static void line(const char* in, char* out, int64_t n, char* scratch) {
    if constexpr (kPartial<T>) {
      if (n <= kLanes) return short_line<T, kLog>(in, out, n);
    }
    const A top = Fold<MaxOp, T>::row(in, n, A(0));
    if constexpr (kLog) {
      const A shift = top + vm::log(Fold<ExpSumOp, T>::row(in, n, top));
      // Two subtractions keep the digits that top and a small logarithm would share.
      const A rest = shift - top;
      transform<T>(
          in, out, n, [&](auto x) __attribute__((always_inline)) {
            using X = decltype(x);
            return (x - X(top)) - X(rest);
          });
    } else {
      const A sum = exponentials(in, scratch, n, top);
      transform<A>(
          scratch, out,
          n, [&](auto x) __attribute__((always_inline)) { return x / decltype(x)(sum); });
    }
  }

  // Registers of lines side by side, row after row, so that memory is read in its own order.
  static constexpr int64_t kRegisters = kBundle / kLanes;
  static void registers(const char* in, char* out, int64_t n, int64_t stride, int64_t count) {
    V top[kRegisters], sum[kRegisters];
    const auto place = [&](int64_t i, int64_t k) { return (i * stride + k * kLanes) * kSize; };
    for (int64_t k = 0; k < count; ++k) top[k] = IO::load(in + place(0, k)), sum[k] = V(A(0));
    for (int64_t i = 1; i < n; ++i) {
      for (int64_t k = 0; k < count; ++k)
        top[k] = MaxOp::fold(top[k], V(IO::load(in + place(i, k))));
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < count; ++k) {
        const V e = vm::exp(IO::load(in + place(i, k)) - top[k]);
        sum[k] = sum[k] + e;
        // Full-width types keep the exponential; Half and BFloat16 would round it.
        if constexpr (!kLog && std::is_same_v<T, A>) e.store(out + place(i, k));
      }
    }
    if constexpr (kLog) {
      for (int64_t k = 0; k < count; ++k) sum[k] = vm::log(sum[k]);
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < count; ++k) {
        const char* from = in + place(i, k);
        if constexpr (kLog)
          IO::store(out + place(i, k), (IO::load(from) - top[k]) - sum[k]);
        else if constexpr (std::is_same_v<T, A>)
          (V::load(out + place(i, k)) / sum[k]).store(out + place(i, k));
        else
          IO::store(out + place(i, k), vm::exp(IO::load(from) - top[k]) / sum[k]);
      }
    }
  }
  static void one_line(const char* in, char* out, int64_t n, int64_t stride) {
    const auto load = [&](int64_t i) { return load_as<T, A>(in + i * stride * kSize); };
    A top = load(0), sum(0);
    for (int64_t i = 1; i < n; ++i) top = MaxOp::fold(top, load(i));
    for (int64_t i = 0; i < n; ++i) sum += vm::exp(load(i) - top);
    const A rest = kLog ? vm::log(sum) : A(0);
    for (int64_t i = 0; i < n; ++i) {
      const A x = load(i) - top;
      store_as<T>(out + i * stride * kSize, kLog ? x - rest : vm::exp(x) / sum);
    }
  }
  static void bundle(const char* in, char* out, int64_t n, int64_t stride, int64_t width) {
    const int64_t count = width / kLanes;
    if (count > 0) registers(in, out, n, stride, count);
    for (int64_t k = count * kLanes; k < width; ++k)
      one_line(in + k * kSize, out + k * kSize, n, stride);
  }

  // ---- backward: (grad - sum(grad * y)) * y, and grad - exp(y) * sum(grad)
  template <class X, class Load, class Store>
  C10_ALWAYS_INLINE static void column_backward(int64_t n, Load grad, Load output, Store store) {
    X sum(A(0));
    for (int64_t i = 0; i < n; ++i) sum = sum + (kLog ? grad(i) : grad(i) * output(i));
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (kLog)
        store(i, grad(i) - vm::exp(output(i)) * sum);
      else
        store(i, (grad(i) - sum) * output(i));
    }
  }
  static A gradient_sum(const char* grad, const char* output, int64_t n) {
    V acc[2] = {V(A(0)), V(A(0))};
    int64_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        const V g = IO::load(grad + (i + k * kLanes) * kSize);
        acc[k] = acc[k] + (kLog ? g : g * IO::load(output + (i + k * kLanes) * kSize));
      }
    }
    A sum = Fold<SumOp, A>::lanes_fold(acc[0] + acc[1]);
    for (; i < n; ++i) {
      const A g = load_as<T, A>(grad + i * kSize);
      sum += kLog ? g : g * load_as<T, A>(output + i * kSize);
    }
    return sum;
  }
  static void gradient(const char* grad, const char* output, char* out, int64_t n, A sum) {
    const auto result = [&](auto g, auto y) __attribute__((always_inline)) {
      using X = decltype(g);
      if constexpr (kLog)
        return g - vm::exp(y) * X(sum);
      else
        return (g - X(sum)) * y;
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      IO::store(out + i * kSize, result(IO::load(grad + i * kSize), IO::load(output + i * kSize)));
    for (; i < n; ++i)
      store_as<T>(out + i * kSize,
                  result(load_as<T, A>(grad + i * kSize), load_as<T, A>(output + i * kSize)));
  }
  static void line_backward(const char* grad, const char* output, char* out, int64_t n) {
    gradient(grad, output, out, n, gradient_sum(grad, output, n));
  }
  static void bundle_backward(const char* grad, const char* output, char* out, int64_t n,
                              int64_t stride, int64_t width) {
    int64_t k = 0;
    for (; k + kLanes <= width; k += kLanes) {
      const auto load = [&](const char* p) {
        return [p, stride, k](int64_t i) { return V(IO::load(p + (i * stride + k) * kSize)); };
      };
      column_backward<V>(n, load(grad), load(output),
                         [&](int64_t i, V x) { IO::store(out + (i * stride + k) * kSize, x); });
    }
    for (; k < width; ++k) {
      const auto load = [&](const char* p) {
        return [p, stride, k](int64_t i) { return load_as<T, A>(p + (i * stride + k) * kSize); };
      };
      column_backward<A>(n, load(grad), load(output),
                         [&](int64_t i, A x) { store_as<T>(out + (i * stride + k) * kSize, x); });
    }
  }

  // ---- parts of long lines
  static double part_top(const char* in, int64_t n) {
    return static_cast<double>(Fold<MaxOp, T>::row(in, n, A(0)));
  }
  static double part_exp_sum(const char* in, int64_t n, double top) {
    return static_cast<double>(Fold<ExpSumOp, T>::row(in, n, static_cast<A>(top)));
  }
  static void part_result(const char* in, char* out, int64_t n, double top, double sum) {
    const A most = static_cast<A>(top), total = static_cast<A>(sum), rest = vm::log(total);
    transform<T>(
        in, out, n, [&](auto x) __attribute__((always_inline)) {
          using X = decltype(x);
          if constexpr (kLog)
            return (x - X(most)) - X(rest);
          else
            return vm::exp(x - X(most)) / X(total);
        });
  }
  static double part_grad_sum(const char* grad, const char* output, int64_t n) {
    return static_cast<double>(gradient_sum(grad, output, n));
  }
  static void part_gradient(const char* grad, const char* output, char* out, int64_t n,
                            double sum) {
    gradient(grad, output, out, n, static_cast<A>(sum));
  }

  static constexpr SoftmaxKernel kernel() {
    return {&line,
            &bundle,
            &line_backward,
            &bundle_backward,
            static_cast<int32_t>(sizeof(A)),
            {&part_top, &part_exp_sum, &part_result, &part_grad_sum, &part_gradient}};
  }
};

template <class... Ts> void fill_types(SoftmaxTable& table, Types<Ts...>) {
  ((table.kernel[0][static_cast<int>(c10::scalar_type_of<Ts>)] = Softmax<Ts, false>::kernel(),
    table.kernel[1][static_cast<int>(c10::scalar_type_of<Ts>)] = Softmax<Ts, true>::kernel()),
   ...);
}
} // namespace

void fill(SoftmaxTable& table) { fill_types(table, FloatingTypes{}); }

} // namespace CRESSET_ISA
} // namespace at::native::softmax_loops
