// From a run-time dtype to a C++ type: one template over a type list with a generic lambda.
//   dtype_switch<AllTypesAndBool>(t.scalar_type(), "gather_cpu", [&](auto tag) {
//     using T = typename decltype(tag)::type; ... });
#pragma once
#include <c10/core/ScalarType.h>

namespace at::native {

template <class... Ts> struct Types {};
template <class A, class B> struct Concat;
template <class... As, class... Bs> struct Concat<Types<As...>, Types<Bs...>> {
  using type = Types<As..., Bs...>;
};

using SignedIntegralTypes = Types<int8_t, int16_t, int32_t, int64_t>;
using IntegralTypes =
    Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>;
using ReducedFloatingTypes = Types<c10::Half, c10::BFloat16>;
using FloatingTypes = Types<c10::Half, c10::BFloat16, float, double>;
using WideFloatingTypes = Types<float, double>;
using ComplexTypes = Types<c10::complex<float>, c10::complex<double>>;
using AllComplexTypes = Types<c10::complex<c10::Half>, c10::complex<float>, c10::complex<double>>;
using FloatingAndComplexTypes = Concat<FloatingTypes, ComplexTypes>::type;
using RealTypes = Concat<IntegralTypes, FloatingTypes>::type;
using RealTypesAndBool = Concat<RealTypes, Types<bool>>::type;
using AllTypes = Concat<RealTypes, ComplexTypes>::type;
using AllTypesAndBool = Concat<RealTypesAndBool, AllComplexTypes>::type;
using IntegralTypesAndBool = Concat<IntegralTypes, Types<bool>>::type;
using Float8Types =
    Types<c10::Float8_e5m2, c10::Float8_e4m3fn, c10::Float8_e5m2fnuz, c10::Float8_e4m3fnuz>;
using AllTypesAndFloat8 = Concat<AllTypesAndBool, Float8Types>::type;

namespace dtype_detail {
template <class List> struct Switch;
template <class... Ts> struct Switch<Types<Ts...>> {
  template <class F> static bool call(c10::ScalarType dtype, const F& f) {
    return ((dtype == c10::scalar_type_of<Ts> && (f(c10::TypeTag<Ts>()), true)) || ...);
  }
};
} // namespace dtype_detail

template <class List, class F>
void dtype_switch(c10::ScalarType dtype, const char* name, const F& f) {
  const bool found = dtype_detail::Switch<List>::call(dtype, f);
  TORCH_CHECK_NOT_IMPLEMENTED(found, "\"", name, "\" not implemented for '", dtype, "'");
}

// By element size, for code that only moves elements: f(tag) with an unsigned type of 1, 2, 4, 8 or
// 16 bytes.
struct alignas(8) Bytes16 {
  uint64_t a, b;
};
template <class F> void itemsize_switch(int64_t itemsize, const F& f) {
  switch (itemsize) {
  case 1:
    f(c10::TypeTag<uint8_t>());
    return;
  case 2:
    f(c10::TypeTag<uint16_t>());
    return;
  case 4:
    f(c10::TypeTag<uint32_t>());
    return;
  case 8:
    f(c10::TypeTag<uint64_t>());
    return;
  case 16:
    f(c10::TypeTag<Bytes16>());
    return;
  default:
    TORCH_INTERNAL_ASSERT(false, "element size ", itemsize);
  }
}

} // namespace at::native
