// all, any, count_nonzero and the exclusive-or hash; also max and min of bool, which are any and
// all.
#include <ATen/native/reduce/Extremum.h>

namespace at::native::reduce {
namespace CRESSET_ISA {
namespace {

// The accumulator sees 0 or 1 for every element type.
template <class T> C10_ALWAYS_INLINE bool is_nonzero(const char* p) {
  if constexpr (c10::is_complex_v<T>) {
    using R = typename T::value_type;
    return is_nonzero<R>(p) || is_nonzero<R>(p + sizeof(R));
  } else {
    return load_as<T, std::conditional_t<is_reduced_v<T>, float, T>>(p) != 0;
  }
}

struct AnyFold {
  static constexpr uint8_t kIdentity = 0;
  template <class A> CRESSET_FN A fold(A a, A b) { return a | b; }
};
struct AllFold {
  static constexpr uint8_t kIdentity = 1;
  template <class A> CRESSET_FN A fold(A a, A b) { return a & b; }
};
struct CountFold {
  static constexpr int64_t kIdentity = 0;
  template <class A> CRESSET_FN A fold(A a, A b) { return a + b; }
};

template <class Op, class T> struct Logic {
  using A = std::remove_const_t<decltype(Op::kIdentity)>;
  // Long runs stop at the first stretch that settles the result.
  static constexpr int64_t kStretch = 1024;

  __attribute__((optimize("O3"))) static A stretch(const char* in, int64_t n) {
    A acc = Op::kIdentity;
    for (int64_t i = 0; i < n; ++i)
      acc = Op::fold(acc, static_cast<A>(is_nonzero<T>(in + i * static_cast<int64_t>(sizeof(T)))));
    return acc;
  }
  static A row(const char* in, int64_t n) {
    A acc = Op::kIdentity;
    for (int64_t i = 0; i < n; i += kStretch) {
      const int64_t m = n - i < kStretch ? n - i : kStretch;
      acc = Op::fold(acc, stretch(in + i * static_cast<int64_t>(sizeof(T)), m));
      if (sizeof(A) == 1 && acc != Op::kIdentity) break;
    }
    return acc;
  }
  __attribute__((optimize("O3"))) static void columns(A* acc, const LeafArgs& a) {
    for (int64_t c = 0; c < a.outputs; ++c) acc[c] = Op::kIdentity;
    for (int64_t r = 0; r < a.count; ++r) {
      const char* in = a.in + r * a.stride;
      for (int64_t c = 0; c < a.outputs; ++c)
        acc[c] = Op::fold(acc[c],
                          static_cast<A>(is_nonzero<T>(in + c * static_cast<int64_t>(sizeof(T)))));
    }
  }
  static void leaf(char* out, const LeafArgs& a) {
    A* acc = reinterpret_cast<A*>(out);
    if (a.stride != static_cast<int64_t>(sizeof(T)) &&
        a.output_stride == static_cast<int64_t>(sizeof(T))) {
      columns(acc, a);
      return;
    }
    for (int64_t i = 0; i < a.outputs; ++i) {
      const char* in = a.in + i * a.output_stride;
      if (a.stride == static_cast<int64_t>(sizeof(T))) {
        acc[i] = row(in, a.count);
        continue;
      }
      acc[i] = Op::kIdentity;
      for (int64_t k = 0; k < a.count; ++k)
        acc[i] = Op::fold(acc[i], static_cast<A>(is_nonzero<T>(in + k * a.stride)));
    }
  }
  static void combine(char* a, const char* b, int64_t outputs) {
    A* x = reinterpret_cast<A*>(a);
    const A* y = reinterpret_cast<const A*>(b);
    for (int64_t i = 0; i < outputs; ++i) x[i] = Op::fold(x[i], y[i]);
  }
};

// Every element as 64 bits: floating numbers as the bits of their double, integers sign-extended.
struct XorSum {
  template <class T> using acc = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  template <class A> CRESSET_FN A identity() { return A(0); }
  template <class V> CRESSET_FN V map(V x, V) { return x; }
  CRESSET_FN int64_t fold(int64_t a, int64_t b) { return a ^ b; }
  CRESSET_FN double fold(double a, double b) {
    int64_t x, y;
    __builtin_memcpy(&x, &a, 8);
    __builtin_memcpy(&y, &b, 8);
    x ^= y;
    __builtin_memcpy(&a, &x, 8);
    return a;
  }
  template <class T> CRESSET_FN vec::Vec<T> fold(vec::Vec<T> a, vec::Vec<T> b) {
    return vec::Vec<T>((typename vec::Vec<T>::Raw)(vec::as_int(a) ^ vec::as_int(b)).v);
  }
};

template <class Op, class... Ts>
void fill_logic_op(ReduceTable& table, ReduceOp op, c10::ScalarType value, Types<Ts...>) {
  ((table.kernel[static_cast<int>(op)][static_cast<int>(c10::scalar_type_of<Ts>)] =
        ReduceKernel{&Logic<Op, Ts>::leaf,
                     &Logic<Op, Ts>::combine,
                     nullptr,
                     static_cast<int32_t>(sizeof(typename Logic<Op, Ts>::A)),
                     1,
                     {value, c10::ScalarType::Undefined}}),
   ...);
}
} // namespace

void fill_logic(ReduceTable& table) {
  fill_logic_op<AllFold>(table, ReduceOp::All, c10::kByte, AllTypesAndBool{});
  fill_logic_op<AnyFold>(table, ReduceOp::Any, c10::kByte, AllTypesAndBool{});
  fill_logic_op<CountFold>(table, ReduceOp::CountNonzero, c10::kLong, AllTypesAndBool{});
  fill_logic_op<AnyFold>(table, ReduceOp::Max, c10::kByte, Types<bool>{});
  fill_logic_op<AllFold>(table, ReduceOp::Min, c10::kByte, Types<bool>{});
  table.kernel[static_cast<int>(ReduceOp::MinMax)][static_cast<int>(c10::kBool)] =
      FoldPair<Logic<AllFold, bool>, Logic<AnyFold, bool>>::kernel(c10::kByte);
  fill_fold<XorSum>(table, ReduceOp::XorSum,
                    Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t,
                          bool, c10::Half, c10::BFloat16, float, double>{});
  // The caller writes the 64 bits of the accumulator as they are.
  for (ReduceKernel& kernel : table.kernel[static_cast<int>(ReduceOp::XorSum)])
    if (kernel.leaf) kernel.value_dtype[0] = c10::kUInt64;
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
