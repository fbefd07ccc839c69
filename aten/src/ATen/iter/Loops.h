// From a functor to a LoopTable: make_loop_table<Functor, inputs, params, OutKind>(types::...{}).
// A functor is a struct with `template <class V> static auto apply(V... inputs, V... params)`,
// written once for scalars and registers (see vec/Vec.h). Included by kernel files only, which are
// compiled once per instruction set; everything here is in that set's namespace.
//
// What a functor may say about itself, all optional:
//   kVectorize = false          always the scalar loop
//   kVectorizeIntegers = false  the scalar loop for integers and bool
//   kVectorizeComplex = true    complex types too: V is complex<Vec<T>>, two registers
//   kStoredType = true          Half and BFloat16 in the scalar loop, as themselves, not as float
//
// Type lists (u = unsigned, i = signed, f = floating, bf = bfloat, c = complex of two parts):
//   all               u8 i8 i16 i32 i64 u16 u32 u64 bool f16 bf16 f32 f64 c32 c64 c128
//   all_nobool        all without bool
//   real              all without complex
//   real_nobool       real without bool
//   integral          u8 i8 i16 i32 i64 u16 u32 u64
//   integral_bool     integral and bool
//   floating          f16 bf16 f32 f64
//   floating_complex  floating, c64 c128
//   pow               real_nobool, c64 c128
//   complex           c64 c128
//   complex_half      complex, c32
#pragma once

#include <type_traits>
#include <utility>

#include <ATen/iter/LoopDriver.h>
#include <ATen/iter/LoopTable.h>
#include <ATen/vec/VecIO.h>

namespace at::native {
inline namespace CRESSET_ISA {

template <class... Ts> struct TypeList {};

namespace types {
using c10::BFloat16;
using c10::Half;
struct all : TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t,
                      bool, Half, BFloat16, float, double, c10::complex<Half>, c10::complex<float>,
                      c10::complex<double>> {};
struct all_nobool : TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t,
                             uint64_t, Half, BFloat16, float, double, c10::complex<Half>,
                             c10::complex<float>, c10::complex<double>> {};
struct real : TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t,
                       bool, Half, BFloat16, float, double> {};
struct real_nobool : TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t,
                              uint64_t, Half, BFloat16, float, double> {};
struct integral
    : TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t> {};
struct integral_bool
    : TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, bool> {};
struct floating : TypeList<Half, BFloat16, float, double> {};
struct floating_complex
    : TypeList<Half, BFloat16, float, double, c10::complex<float>, c10::complex<double>> {};
struct pow : TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t,
                      Half, BFloat16, float, double, c10::complex<float>, c10::complex<double>> {};
struct complex : TypeList<c10::complex<float>, c10::complex<double>> {};
struct complex_half : TypeList<c10::complex<Half>, c10::complex<float>, c10::complex<double>> {};
} // namespace types

namespace detail {

template <class F, class = void> inline constexpr bool wants_vectors_v = true;
template <class F> inline constexpr bool wants_vectors_v<F, std::void_t<decltype(F::kVectorize)>> =
    F::kVectorize;
template <class F, class = void> inline constexpr bool wants_integer_vectors_v = true;
template <class F>
inline constexpr bool wants_integer_vectors_v<F, std::void_t<decltype(F::kVectorizeIntegers)>> =
    F::kVectorizeIntegers;
template <class F, class = void> inline constexpr bool wants_complex_vectors_v = false;
template <class F>
inline constexpr bool wants_complex_vectors_v<F, std::void_t<decltype(F::kVectorizeComplex)>> =
    F::kVectorizeComplex;

template <class F, class = void> inline constexpr bool wants_stored_type_v = false;
template <class F>
inline constexpr bool wants_stored_type_v<F, std::void_t<decltype(F::kStoredType)>> =
    F::kStoredType;

template <class F, class T> constexpr bool vectorized() {
  if constexpr (std::is_same_v<T, c10::complex<c10::Half>>) {
    return false;
  } else if constexpr (wants_stored_type_v<F> && !std::is_same_v<vec::opmath_t<T>, T>) {
    return false;
  } else if constexpr (c10::is_complex_v<T>) {
    return wants_complex_vectors_v<F>;
  } else if constexpr (std::is_integral_v<T>) {
    return wants_vectors_v<F> && wants_integer_vectors_v<F>;
  } else {
    return wants_vectors_v<F>;
  }
}

template <OutKind kOut, class T> struct OutType { using type = T; };
template <class T> struct OutType<OutKind::Bool, T> { using type = bool; };
template <class T> struct OutType<OutKind::Real, T> { using type = c10::real_type_t<T>; };

template <class F, OutKind kOut, class T, class Inputs, class Params> struct VecLoop;

template <class F, OutKind kOut, class T, size_t... I, size_t... P>
struct VecLoop<F, kOut, T, std::index_sequence<I...>, std::index_sequence<P...>> {
  using Compute = vec::opmath_t<T>;
  using IO = vec::VecIO<T>;
  using V = decltype(IO::load(nullptr));
  using Out = typename OutType<kOut, T>::type;
  static constexpr int kLanes =
      vec::kVecBytes / static_cast<int>(sizeof(c10::real_type_t<Compute>));

  static void kernel(char* out, const char* const* in, const int64_t* step, int64_t registers,
                     const void* params) {
    const char* from[sizeof...(I)] = {in[I]...};
    const int64_t advance[sizeof...(I)] = {step[I]...};
    [[maybe_unused]] const auto* scalars = static_cast<const Compute*>(params);
    [[maybe_unused]] const V splats[sizeof...(P) + 1] = {splat(scalars[P])...};
    for (; registers > 0; --registers) {
      const auto result = F::apply(IO::load(from[I])..., splats[P]...);
      if constexpr (kOut == OutKind::Bool) {
        vec::store_mask(out, result);
      } else if constexpr (kOut == OutKind::Real) {
        vec::VecIO<Out>::store(out, result);
      } else {
        IO::store(out, result);
      }
      out += kLanes * sizeof(Out);
      ((from[I] += advance[I]), ...);
    }
  }

  static void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    static constexpr VecLoopShape kShape = {&kernel, sizeof...(I), kLanes, sizeof(T), sizeof(Out)};
    run_vec_loop(kShape, data, strides, n, params);
  }

 private:
  C10_ALWAYS_INLINE static V splat(Compute s) {
    if constexpr (c10::is_complex_v<Compute>) {
      return V(vec::Vec(s.real_), vec::Vec(s.imag_));
    } else {
      return V(s);
    }
  }
};

// One element in and out of memory. bool is read as a byte because foreign memory may hold any.
template <class T, class Compute> C10_ALWAYS_INLINE Compute load_element(const char* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return *p != 0;
  } else {
    T value;
    __builtin_memcpy(&value, p, sizeof(T));
    return static_cast<Compute>(value);
  }
}
template <class T, class C> C10_ALWAYS_INLINE void store_element(char* p, C value) {
  const T element = static_cast<T>(value);
  __builtin_memcpy(p, &element, sizeof(T));
}

template <class F, OutKind kOut, class T, class Inputs, class Params> struct ScalarLoop;

template <class F, OutKind kOut, class T, size_t... I, size_t... P>
struct ScalarLoop<F, kOut, T, std::index_sequence<I...>, std::index_sequence<P...>> {
  using Compute = std::conditional_t<wants_stored_type_v<F>, T, vec::opmath_t<T>>;
  using Out = typename OutType<kOut, T>::type;

  static void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    char* out = data[0];
    const char* from[sizeof...(I)] = {data[I + 1]...};
    [[maybe_unused]] const auto* scalars = static_cast<const vec::opmath_t<T>*>(params);
    [[maybe_unused]] const Compute values[sizeof...(P) + 1] = {static_cast<Compute>(scalars[P])...};
    for (int64_t i = 0; i < n; ++i) {
      store_element<Out>(out, F::apply(load_element<T, Compute>(from[I])..., values[P]...));
      out += strides[0];
      ((from[I] += strides[I + 1]), ...);
    }
  }
};

template <class F, int kInputs, int kParams, OutKind kOut, class T> constexpr Loop1d loop_of() {
  using Inputs = std::make_index_sequence<kInputs>;
  using Params = std::make_index_sequence<kParams>;
  if constexpr (vectorized<F, T>()) {
    return &VecLoop<F, kOut, T, Inputs, Params>::run;
  } else {
    return &ScalarLoop<F, kOut, T, Inputs, Params>::run;
  }
}

} // namespace detail

template <class F, int kInputs, int kParams, OutKind kOut, class... Ts>
constexpr LoopTable make_loop_table(TypeList<Ts...>) {
  static_assert(kInputs >= 1 && kInputs <= kMaxLoopInputs);
  LoopTable table{};
  ((table.loop[static_cast<int>(c10::scalar_type_of<Ts>)] =
        detail::loop_of<F, kInputs, kParams, kOut, Ts>()),
   ...);
  return table;
}

} // namespace CRESSET_ISA
} // namespace at::native
