// Reductions whose accumulator is one number: map each element, fold the results. Three loops serve
// all layouts: rows (a contiguous run per result, eight registers side by side), columns (results
// lie side by side: eight rows are folded in a tree before they meet the accumulators, which stay
// in the cache) and strided ones. Types without a register form of their accumulator use plain
// loops that the compiler vectorises. Included by kernel files only.
//
// An operation is a struct with
//   template <class T> using acc            accumulator type for elements of T
//   template <class A> A identity()
//   template <class V> V map(V x, V param)  on accumulator-typed scalars and registers
//   template <class V> V fold(V a, V b)
// and for complex elements folded as real numbers `template <class A> A map_complex(complex<A>,
// A)`. An operation in which a NaN decides may add `template <class V> V fold_ordered(V a, V b)`, a
// cheaper fold that is right when neither is NaN; rows use it and fall back when they meet a NaN.
#pragma once

#include <type_traits>

#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/reduce/ReduceKernel.h>
#include <ATen/vec/ValueMath.h>
#include <ATen/vec/VecIO.h>

namespace at::native::reduce {
namespace CRESSET_ISA {

template <class T> inline constexpr bool is_reduced_v =
    std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;
// Registers of A can be filled from memory that holds T.
template <class T, class A> inline constexpr bool
    loads_as_v = (std::is_same_v<T, A> && !c10::is_complex_v<T> && !std::is_same_v<T, bool>) ||
                 (is_reduced_v<T> && std::is_same_v<A, float>);

// bool is read as a byte because foreign memory may hold any.
template <class T, class A> C10_ALWAYS_INLINE A load_as(const char* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<A>(*p != 0);
  } else if constexpr (std::is_same_v<T, A>) {
    T value;
    __builtin_memcpy(&value, p, sizeof(T));
    return value;
  } else if constexpr (is_reduced_v<T>) {
    T value;
    __builtin_memcpy(&value, p, sizeof(T));
    return static_cast<A>(static_cast<float>(value));
  } else {
    T value;
    __builtin_memcpy(&value, p, sizeof(T));
    return A(value);
  }
}

template <class Op, class V, class = void> inline constexpr bool has_ordered_v = false;
template <class Op, class V> inline constexpr bool
    has_ordered_v<Op, V, std::void_t<decltype(Op::template fold_ordered<V>(V(), V()))>> =
        vm::is_floating_v<vec::element_t<V>>;

template <class Op, class T> struct Fold {
  using A = typename Op::template acc<T>;
  static constexpr bool kVector = loads_as_v<T, A>;
  // Elements as the map sees them: complex numbers folded to real ones come whole.
  static constexpr bool kFromComplex = c10::is_complex_v<T> && !c10::is_complex_v<A>;

  C10_ALWAYS_INLINE static A element(const char* p, A param) {
    if constexpr (kFromComplex) {
      return Op::map_complex(load_as<T, c10::complex<A>>(p), param);
    } else {
      return Op::map(load_as<T, A>(p), param);
    }
  }

  // ---- one contiguous run
  // The fold of whole groups of eight registers by the cheaper fold, into acc; false when a NaN (or
  // infinities of both signs, whose sum is one) was met. One comparison looks at two registers.
  template <class V>
  C10_ALWAYS_INLINE static bool ordered_groups(V* acc, const char* in, int64_t groups, V p) {
    using IO = vec::VecIO<T>;
    constexpr int64_t step = V::kLanes * static_cast<int64_t>(sizeof(T));
    vec::Mask<A> nan = {};
    for (; groups > 0; --groups, in += 8 * step) {
#pragma GCC unroll 4
      for (int k = 0; k < 8; k += 2) {
        const V x = Op::map(IO::load(in + k * step), p),
                y = Op::map(IO::load(in + (k + 1) * step), p);
        const V both = x + y;
        nan = nan | (both != both);
        acc[k] = Op::fold_ordered(acc[k], x);
        acc[k + 1] = Op::fold_ordered(acc[k + 1], y);
      }
    }
    return !vec::any(nan);
  }
  C10_ALWAYS_INLINE static A row_vector(const char* in, int64_t n, A param) {
    using V = vec::Vec<A>;
    using IO = vec::VecIO<T>;
    constexpr int64_t lanes = V::kLanes;
    constexpr int64_t step = lanes * static_cast<int64_t>(sizeof(T));
    const V p(param);
    int64_t i = 0;
    A result = Op::template identity<A>();
    if (n >= lanes) {
      V acc[8];
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) acc[k] = V(Op::template identity<A>());
      const char* cursor = in;
      if constexpr (has_ordered_v<Op, V>) {
        const int64_t groups = n / (8 * lanes);
        if (C10_LIKELY(ordered_groups(acc, in, groups, p))) {
          i = groups * 8 * lanes;
          cursor += groups * 8 * step;
        } else {
#pragma GCC unroll 8
          for (int k = 0; k < 8; ++k) acc[k] = V(Op::template identity<A>());
        }
      }
      for (; i + 8 * lanes <= n; i += 8 * lanes, cursor += 8 * step) {
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k)
          acc[k] = Op::fold(acc[k], Op::map(IO::load(cursor + k * step), p));
      }
      for (; i + lanes <= n; i += lanes, cursor += step)
        acc[0] = Op::fold(acc[0], Op::map(IO::load(cursor), p));
#pragma GCC unroll 4
      for (int h = 4; h > 0; h /= 2) {
#pragma GCC unroll 4
        for (int k = 0; k < h; ++k) acc[k] = Op::fold(acc[k], acc[k + h]);
      }
      result = lanes_fold(acc[0]);
    }
    for (; i < n; ++i)
      result = Op::fold(result, element(in + i * static_cast<int64_t>(sizeof(T)), param));
    return result;
  }
  template <class V> C10_ALWAYS_INLINE static A lanes_fold(V v) {
    A lane[V::kLanes];
    __builtin_memcpy(lane, &v.v, sizeof(lane));
#pragma GCC unroll 8
    for (int h = V::kLanes / 2; h > 0; h /= 2) {
#pragma GCC unroll 64
      for (int k = 0; k < h; ++k) lane[k] = Op::fold(lane[k], lane[k + h]);
    }
    return lane[0];
  }
  __attribute__((optimize("O3"))) static A row_plain(const char* in, int64_t n, A param) {
    A acc[4] = {Op::template identity<A>(), Op::template identity<A>(), Op::template identity<A>(),
                Op::template identity<A>()};
    constexpr int64_t size = sizeof(T);
    int64_t i = 0;
    if constexpr (std::is_integral_v<A>) {
      // Order does not matter, so one accumulator leaves the compiler free.
      for (; i < n; ++i) acc[0] = Op::fold(acc[0], element(in + i * size, param));
      return acc[0];
    } else {
      for (; i + 4 <= n; i += 4) {
        for (int k = 0; k < 4; ++k) acc[k] = Op::fold(acc[k], element(in + (i + k) * size, param));
      }
      for (; i < n; ++i) acc[0] = Op::fold(acc[0], element(in + i * size, param));
      return Op::fold(Op::fold(acc[0], acc[1]), Op::fold(acc[2], acc[3]));
    }
  }
  C10_ALWAYS_INLINE static A row(const char* in, int64_t n, A param) {
    if constexpr (kVector)
      return row_vector(in, n, param);
    else
      return row_plain(in, n, param);
  }

  // ---- results side by side
  template <class X, class Load> C10_ALWAYS_INLINE static X eight(Load load) {
    return Op::fold(Op::fold(Op::fold(load(0), load(1)), Op::fold(load(2), load(3))),
                    Op::fold(Op::fold(load(4), load(5)), Op::fold(load(6), load(7))));
  }
  static void columns(A* acc, const LeafArgs& a) {
    constexpr int64_t size = sizeof(T);
    const A param = static_cast<A>(a.param);
    for (int64_t c = 0; c < a.outputs; ++c) acc[c] = Op::template identity<A>();
    int64_t r = 0;
    for (; r + 8 <= a.count; r += 8) {
      const char* in = a.in + r * a.stride;
      int64_t c = 0;
      if constexpr (kVector) {
        using V = vec::Vec<A>;
        const V p(param);
        for (; c + V::kLanes <= a.outputs; c += V::kLanes) {
          const V sum = eight<V>([&](int k) __attribute__((always_inline)) {
            return Op::map(vec::VecIO<T>::load(in + k * a.stride + c * size), p);
          });
          Op::fold(V::load(acc + c), sum).store(acc + c);
        }
      }
      for (; c < a.outputs; ++c) {
        const A sum = eight<A>([&](int k) { return element(in + k * a.stride + c * size, param); });
        acc[c] = Op::fold(acc[c], sum);
      }
    }
    for (; r < a.count; ++r) one_row(acc, a.in + r * a.stride, a.outputs, param);
  }
  C10_ALWAYS_INLINE static void one_row(A* acc, const char* in, int64_t outputs, A param) {
    constexpr int64_t size = sizeof(T);
    int64_t c = 0;
    if constexpr (kVector) {
      using V = vec::Vec<A>;
      const V p(param);
      for (; c + V::kLanes <= outputs; c += V::kLanes)
        Op::fold(V::load(acc + c), Op::map(vec::VecIO<T>::load(in + c * size), p)).store(acc + c);
    }
    for (; c < outputs; ++c) acc[c] = Op::fold(acc[c], element(in + c * size, param));
  }

  // ---- any strides
  static A strided(const char* in, int64_t stride, int64_t n, A param) {
    A acc[4] = {Op::template identity<A>(), Op::template identity<A>(), Op::template identity<A>(),
                Op::template identity<A>()};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      for (int k = 0; k < 4; ++k) acc[k] = Op::fold(acc[k], element(in + (i + k) * stride, param));
    }
    for (; i < n; ++i) acc[0] = Op::fold(acc[0], element(in + i * stride, param));
    return Op::fold(Op::fold(acc[0], acc[1]), Op::fold(acc[2], acc[3]));
  }

  static void leaf(char* out, const LeafArgs& a) {
    A* acc = reinterpret_cast<A*>(out);
    const A param = static_cast<A>(a.param);
    if (a.stride == static_cast<int64_t>(sizeof(T))) {
      for (int64_t i = 0; i < a.outputs; ++i)
        acc[i] = row(a.in + i * a.output_stride, a.count, param);
    } else if (a.outputs > 1 && a.output_stride == static_cast<int64_t>(sizeof(T))) {
      columns(acc, a);
    } else {
      for (int64_t i = 0; i < a.outputs; ++i)
        acc[i] = strided(a.in + i * a.output_stride, a.stride, a.count, param);
    }
  }
  static void combine(char* a, const char* b, int64_t outputs) {
    A* x = reinterpret_cast<A*>(a);
    const A* y = reinterpret_cast<const A*>(b);
    for (int64_t i = 0; i < outputs; ++i) x[i] = Op::fold(x[i], y[i]);
  }
};

// Enters Op for the element types Ts into the table; the values are the accumulators.
template <class Op, class... Ts> void fill_fold(ReduceTable& table, ReduceOp op, Types<Ts...>) {
  ((table.kernel[static_cast<int>(op)][static_cast<int>(c10::scalar_type_of<Ts>)] =
        ReduceKernel{&Fold<Op, Ts>::leaf,
                     &Fold<Op, Ts>::combine,
                     nullptr,
                     static_cast<int32_t>(sizeof(typename Fold<Op, Ts>::A)),
                     1,
                     {c10::scalar_type_of<typename Fold<Op, Ts>::A>, c10::ScalarType::Undefined}}),
   ...);
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
