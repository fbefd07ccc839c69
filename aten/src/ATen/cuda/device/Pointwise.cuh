// The kernels of pointwise operators, from the functors of native/pointwise/. Two kernels per
// operator and element type serve all layouts:
//
//   flat     every operand is contiguous, or one value for all elements; accesses of 16 bytes,
//            several in flight, element by element where a pointer is not aligned
//   strided  anything else; where all operands advance by one element (or not at all) along the
//            innermost dimension, whole packs are moved there too
//
// CRESSET_POINTWISE(table, functor, inputs, params, kind, type) defines both for one type;
// CRESSET_POINTWISE_MIXED for inputs of different types. The argument structures
// (Arguments.h) are filled by ATen/cuda/Pointwise.cpp.
#pragma once

#include <ATen/vec/ValueMath.h>

// Before this a kernel touches nothing but its arguments: its launch may overlap the end of the one
// before it (ATen/cuda/Launch.h), which must be over when memory is read or written.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CRESSET_AWAIT_PREDECESSOR asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define CRESSET_AWAIT_PREDECESSOR
#endif

namespace at::device {

enum class OutKind { Same, Bool, Real };
template <OutKind kOut, class T> struct OutType { using type = T; };
template <class T> struct OutType<OutKind::Bool, T> { using type = bool; };
template <class T> struct OutType<OutKind::Real, T> { using type = c10::real_type_t<T>; };

template <class F, class = void> inline constexpr bool wants_stored_type_v = false;
template <class F>
inline constexpr bool wants_stored_type_v<F, std::void_t<decltype(F::kStoredType)>> =
    F::kStoredType;
template <class F, class T> using compute_t =
    std::conditional_t<wants_stored_type_v<F>, T, opmath_t<T>>;

// Functors that are not worth vectorising on the CPU are long: one copy of them per kernel.
template <class F, class = void> inline constexpr bool is_long_v = false;
template <class F> inline constexpr bool is_long_v<F, std::void_t<decltype(F::kVectorize)>> =
    !F::kVectorize;

// bool lies in memory as bytes, of which any non-zero one is true.
template <class T> struct Memory { using type = T; };
template <> struct Memory<bool> { using type = unsigned char; };
template <class T> using memory_t = typename Memory<T>::type;

template <class... Ts> struct Types {};

CRESSET_DEVICE_FN constexpr int largest() { return 1; }
template <class... Rest> CRESSET_DEVICE_FN constexpr int largest(int first, Rest... rest) {
  const int other = largest(rest...);
  return first > other ? first : other;
}

// One input's elements of a step; operands have different types, hence a base class for each.
template <int kIndex, class T, int kCount> struct Slot { Pack<memory_t<T>, kCount> pack; };

template <class F, class Out, class Compute, class Param, class In, class Inputs, class Params>
struct PointwiseBody;

template <class F, class Out, class Compute, class Param, class... In, size_t... I, size_t... P>
struct PointwiseBody<F, Out, Compute, Param, Types<In...>, std::index_sequence<I...>,
                     std::index_sequence<P...>> {
  using OutMemory = memory_t<Out>;
  static constexpr int kPack = 16 / largest(sizeof(Out), sizeof(In)...);
  static constexpr int kSteps = 2; // packs per thread, in flight together
  static constexpr bool kLong = is_long_v<F>;
  template <int kCount> struct Operands : Slot<I, In, kCount>... {};

  template <int kCount> CRESSET_DEVICE_FN static Pack<OutMemory, kCount>
  apply(const Operands<kCount>& x, const Number* param) {
    Pack<OutMemory, kCount> r;
    CRESSET_UNROLL
    for (int j = 0; j < kCount; ++j) {
      const auto value =
          F::apply(widen<In>(static_cast<const Slot<I, In, kCount>&>(x).pack.v[j])...,
                   static_cast<Compute>(param[P].template as<Param>())...);
      r.v[j] = static_cast<OutMemory>(convert<Out>(value));
    }
    return r;
  }
  template <class T> CRESSET_DEVICE_FN static Compute widen(memory_t<T> x) {
    if constexpr (std::is_same_v<T, bool>)
      return convert<Compute>(x != 0);
    else
      return convert<Compute>(x);
  }
  template <class T, int kCount>
  CRESSET_DEVICE_FN static void splat(Pack<T, kCount>& pack, const void* p, const Number& number) {
    const T value = p == nullptr ? number.template as<T>() : *static_cast<const T*>(p);
    CRESSET_UNROLL
    for (int j = 0; j < kCount; ++j) pack.v[j] = value;
  }

  // ---- flat
  CRESSET_DEVICE_FN static void flat(const FlatArgs& a) {
    constexpr long kBlock = static_cast<long>(kFlatThreads) * kSteps;
    if constexpr (kLong) {
      const long first = blockIdx.x * kBlock * kPack + threadIdx.x;
      CRESSET_NO_UNROLL
      for (int k = 0; k < kPack * kSteps; ++k) {
        const long position = first + k * kFlatThreads;
        flat_steps<1, 1>(a, position, a.n);
      }
    } else if (a.aligned) {
      const long packs = a.n / kPack;
      flat_steps<kPack, kSteps>(a, blockIdx.x * kBlock + threadIdx.x, packs);
      // The elements after the last whole pack: one each for the last block's first threads.
      const long rest = packs * kPack + threadIdx.x;
      if (kPack > 1 && blockIdx.x == gridDim.x - 1 && rest < a.n)
        flat_steps<1, 1>(a, rest, rest + 1);
    } else {
      const long first = blockIdx.x * kBlock * kPack + threadIdx.x;
      for (int k = 0; k < kPack; ++k) flat_steps<1, kSteps>(a, first + k * kBlock, a.n);
    }
  }
  // kRun packs of kCount at `at`, at + threads, ... below `end`; all loads before the first use.
  template <int kCount, int kRun>
  CRESSET_DEVICE_FN static void flat_steps(const FlatArgs& a, long position, long end) {
    Operands<kCount> x[kRun];
    (flat_load<I, In, kCount, kRun>(x, a, position, end), ...);
    CRESSET_UNROLL
    for (int s = 0; s < kRun; ++s) {
      const long here = position + s * kFlatThreads;
      if (here < end)
        store_pack(static_cast<OutMemory*>(a.out) + here * kCount, apply(x[s], a.param));
    }
  }
  template <int kIndex, class T, int kCount, int kRun> CRESSET_DEVICE_FN static void
  flat_load(Operands<kCount>* x, const FlatArgs& a, long position, long end) {
    using S = Slot<kIndex, T, kCount>;
    if (a.single >> kIndex & 1) {
      splat(static_cast<S&>(x[0]).pack, a.in[kIndex], a.number[kIndex]);
      CRESSET_UNROLL
      for (int s = 1; s < kRun; ++s) static_cast<S&>(x[s]).pack = static_cast<S&>(x[0]).pack;
    } else {
      const auto* in = static_cast<const memory_t<T>*>(a.in[kIndex]);
      CRESSET_UNROLL
      for (int s = 0; s < kRun; ++s) {
        const long here = position + s * kFlatThreads;
        if (here < end) static_cast<S&>(x[s]).pack = load_pack<kCount>(in + here * kCount);
      }
    }
  }

  // ---- strided
  CRESSET_DEVICE_FN static void strided(const StridedArgs& a) {
    const unsigned step = blockIdx.x * kPointwiseThreads + threadIdx.x;
    if (step >= a.n) return;
    long offset[sizeof...(In) + 1] = {};
    unsigned rest = step;
    CRESSET_NO_UNROLL
    for (int d = 0; d < a.ndim; ++d) {
      const unsigned q = a.size[d].quotient(rest);
      const long i = rest - q * a.size[d].divisor;
      rest = q;
      CRESSET_UNROLL
      for (int k = 0; k <= static_cast<int>(sizeof...(In)); ++k) offset[k] += i * a.stride[d][k];
    }
    if (a.packed != 0 && !kLong)
      strided_step<kPack>(a, offset);
    else if (a.packed != 0)
      strided_one_by_one(a, offset);
    else
      strided_step<1>(a, offset);
  }
  template <int kCount>
  CRESSET_DEVICE_FN static void strided_step(const StridedArgs& a, const long* offset) {
    Operands<kCount> x;
    (strided_load<I, In, kCount>(x, a, offset), ...);
    store_pack(reinterpret_cast<OutMemory*>(static_cast<char*>(a.out) + offset[0]),
               apply(x, a.param));
  }
  CRESSET_DEVICE_FN static void strided_one_by_one(const StridedArgs& a, long* offset) {
    CRESSET_NO_UNROLL
    for (int j = 0; j < kPack; ++j) {
      strided_step<1>(a, offset);
      offset[0] += sizeof(Out);
      ((offset[I + 1] += a.inner >> I & 1 ? sizeof(In) : 0), ...);
    }
  }
  template <int kIndex, class T, int kCount> CRESSET_DEVICE_FN static void
  strided_load(Operands<kCount>& x, const StridedArgs& a, const long* offset) {
    auto& pack = static_cast<Slot<kIndex, T, kCount>&>(x).pack;
    const char* in = static_cast<const char*>(a.in[kIndex]);
    if (in != nullptr) in += offset[kIndex + 1];
    if (in != nullptr && (a.inner >> kIndex & 1))
      pack = load_pack<kCount>(reinterpret_cast<const memory_t<T>*>(in));
    else
      splat(pack, in, a.number[kIndex]);
  }
};

// All inputs of one type.
template <size_t, class T> using Repeat = T;
template <class F, OutKind kOut, class T, class Inputs, int kParams> struct UniformBody;
template <class F, OutKind kOut, class T, size_t... I, int kParams>
struct UniformBody<F, kOut, T, std::index_sequence<I...>, kParams> {
  using type = PointwiseBody<F, typename OutType<kOut, T>::type, compute_t<F, T>, opmath_t<T>,
                             Types<Repeat<I, T>...>, std::index_sequence<I...>,
                             std::make_index_sequence<kParams>>;
};
template <class F, OutKind kOut, class T, int kInputs, int kParams> using Uniform =
    typename UniformBody<F, kOut, T, std::make_index_sequence<kInputs>, kParams>::type;

// Inputs of types In, computed as T, stored as Out.
template <class F, class Out, class T, int kParams, class... In> using Mixed =
    PointwiseBody<F, Out, compute_t<F, T>, opmath_t<T>, Types<In...>,
                  std::make_index_sequence<sizeof...(In)>, std::make_index_sequence<kParams>>;

// Conversion between element types: the value passes through unchanged.
struct Pass {
  static constexpr bool kStoredType = true;
  template <class V> CRESSET_DEVICE_FN static V apply(V x) { return x; }
};

} // namespace at::device

#define CRESSET_POINTWISE_KERNELS(name, suffix, ...)                                               \
  CRESSET_KERNEL(at::device::kFlatThreads)                                                         \
  name##_flat_##suffix(const __grid_constant__ at::device::FlatArgs args) {                        \
    CRESSET_AWAIT_PREDECESSOR;                                                                     \
    __VA_ARGS__::flat(args);                                                                       \
  }                                                                                                \
  CRESSET_KERNEL(at::device::kPointwiseThreads)                                                    \
  name##_strided_##suffix(const __grid_constant__ at::device::StridedArgs args) {                  \
    __VA_ARGS__::strided(args);                                                                    \
  }
#define CRESSET_POINTWISE(table, functor, inputs, params, kind, type)                              \
  CRESSET_POINTWISE_KERNELS(                                                                       \
      table, type,                                                                                 \
      at::device::Uniform<at::native::fn::functor, at::device::OutKind::kind, cresset_##type,      \
                          inputs, params>)
// Kernels named <table>_flat_mixed and <table>_strided_mixed; the types of the inputs follow.
#define CRESSET_POINTWISE_MIXED(table, functor, params, out, type, ...)                            \
  CRESSET_POINTWISE_KERNELS(table, mixed,                                                          \
                            at::device::Mixed<at::native::fn::functor, cresset_##out,              \
                                              cresset_##type, params, __VA_ARGS__>)
#define CRESSET_CAST(from, to)                                                                     \
  CRESSET_POINTWISE_KERNELS(                                                                       \
      cast_##from, to,                                                                             \
      at::device::Mixed<at::device::Pass, cresset_##to, cresset_##from, 0, cresset_##from>)
