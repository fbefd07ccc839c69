// max and min with the position of the first such element; a NaN counts as the extreme value. A
// contiguous run is read twice while it is in the cache: once for the value, once until the value
// is met. Accumulators are all positions, then all values, so that columns can be kept in
// registers.
#include <ATen/native/reduce/Extremum.h>

namespace at::native::reduce {
namespace CRESSET_ISA {
namespace {

template <class T> C10_ALWAYS_INLINE bool any_lane(vec::Mask<T> m) {
  typedef long Words __attribute__((vector_size(vec::kVecBytes)));
  const Words words = (Words)m.m;
  long found = 0;
#pragma GCC unroll 8
  for (int i = 0; i < vec::kVecBytes / 8; ++i) found |= words[i];
  return found != 0;
}

template <class Op, class T> struct Arg {
  using F = Fold<Op, T>;
  using A = typename F::A;

  // True when b, which comes later, replaces a.
  C10_ALWAYS_INLINE static bool replaces(A b, A a) {
    if constexpr (std::is_same_v<Op, MaxOp>)
      return b > a || (b != b && a == a);
    else
      return b < a || (b != b && a == a);
  }
  C10_ALWAYS_INLINE static bool same(A x, A value) {
    return x == value || (x != x && value != value);
  }

  static int64_t find(const char* in, int64_t stride, int64_t n, A value) {
    int64_t i = 0;
    if (stride == static_cast<int64_t>(sizeof(T))) {
      using V = vec::Vec<A>;
      constexpr int64_t lanes = V::kLanes;
      const V wanted(value);
      const bool nan = value != value;
      for (; i + 4 * lanes <= n; i += 4 * lanes) {
        vec::Mask<A> hit = {};
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          const V x = vec::VecIO<T>::load(in + (i + k * lanes) * static_cast<int64_t>(sizeof(T)));
          hit = hit | (nan ? x != x : x == wanted);
        }
        if (any_lane(hit)) break;
      }
    }
    for (; i < n; ++i)
      if (same(load_as<T, A>(in + i * stride), value)) return i;
    return 0;
  }

  static constexpr bool kColumnRegisters = F::kVector && (sizeof(A) == 4 || sizeof(A) == 8);
  // Registers of values and of positions within the block, over all rows.
  static void column_vector(int64_t* index, A* best, const char* in, const LeafArgs& a) {
    using V = vec::Vec<A>;
    using I = vec::Vec<vec::int_of<A>>;
    V top = vec::VecIO<T>::load(in);
    I where(vec::int_of<A>(0));
    for (int64_t r = 1; r < a.count; ++r) {
      const V x = vec::VecIO<T>::load(in + r * a.stride);
      auto take = std::is_same_v<Op, MaxOp> ? x > top : x < top;
      if constexpr (vm::is_floating_v<A>) take = take | ((x != x) & (top == top));
      top = vec::select(take, x, top);
      where = I(take.m ? I(static_cast<vec::int_of<A>>(r)).v : where.v);
    }
    top.store(best);
    for (int k = 0; k < V::kLanes; ++k) index[k] = a.index + where.v[k];
  }
  static void columns(int64_t* index, A* best, const LeafArgs& a) {
    int64_t c = 0;
    if constexpr (kColumnRegisters) {
      constexpr int64_t lanes = vec::Vec<A>::kLanes;
      for (; c + lanes <= a.outputs; c += lanes)
        column_vector(index + c, best + c, a.in + c * static_cast<int64_t>(sizeof(T)), a);
    }
    const int64_t first = c;
    for (; c < a.outputs; ++c) {
      best[c] = load_as<T, A>(a.in + c * static_cast<int64_t>(sizeof(T)));
      index[c] = a.index;
    }
    for (int64_t r = 1; r < a.count; ++r) {
      for (c = first; c < a.outputs; ++c) {
        const A x = load_as<T, A>(a.in + r * a.stride + c * static_cast<int64_t>(sizeof(T)));
        if (replaces(x, best[c])) best[c] = x, index[c] = a.index + r;
      }
    }
  }

  static void leaf(char* acc, const LeafArgs& a) {
    int64_t* index = reinterpret_cast<int64_t*>(acc);
    A* best = reinterpret_cast<A*>(index + a.outputs);
    if (a.stride != static_cast<int64_t>(sizeof(T)) && a.outputs > 1 && a.count > 0 &&
        a.output_stride == static_cast<int64_t>(sizeof(T))) {
      columns(index, best, a);
      return;
    }
    F::leaf(reinterpret_cast<char*>(best), a);
    for (int64_t i = 0; i < a.outputs; ++i)
      index[i] = a.index + find(a.in + i * a.output_stride, a.stride, a.count, best[i]);
  }
  static void combine(char* a, const char* b, int64_t outputs) {
    int64_t* index_a = reinterpret_cast<int64_t*>(a);
    const int64_t* index_b = reinterpret_cast<const int64_t*>(b);
    A* best_a = reinterpret_cast<A*>(index_a + outputs);
    const A* best_b = reinterpret_cast<const A*>(index_b + outputs);
    for (int64_t i = 0; i < outputs; ++i)
      if (replaces(best_b[i], best_a[i])) best_a[i] = best_b[i], index_a[i] = index_b[i];
  }
  static void finish(char* const* value, const char* acc, int64_t outputs, const FinishArgs&) {
    __builtin_memcpy(value[1], acc, outputs * sizeof(int64_t));
    __builtin_memcpy(value[0], acc + outputs * sizeof(int64_t), outputs * sizeof(A));
  }
};

template <class Op, class T> ReduceKernel arg_kernel(c10::ScalarType value) {
  using K = Arg<Op, T>;
  return {&K::leaf, &K::combine,        &K::finish, static_cast<int32_t>(8 + sizeof(typename K::A)),
          2,        {value, c10::kLong}};
}
template <class Op, class... Ts> void fill_op(ReduceTable& table, ReduceOp op, Types<Ts...>) {
  auto& row = table.kernel[static_cast<int>(op)];
  ((row[static_cast<int>(c10::scalar_type_of<Ts>)] =
        arg_kernel<Op, Ts>(c10::scalar_type_of<vec::opmath_t<Ts>>)),
   ...);
  row[static_cast<int>(c10::kBool)] = arg_kernel<Op, uint8_t>(c10::kByte);
}
} // namespace

void fill_arg(ReduceTable& table) {
  fill_op<MaxOp>(table, ReduceOp::ArgMax, RealTypes{});
  fill_op<MinOp>(table, ReduceOp::ArgMin, RealTypes{});
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
