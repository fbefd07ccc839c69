// frexp, the one operator here with two outputs of different types: x = mantissa * 2^exponent with
// the mantissa in [0.5, 1). The loop's operands are mantissa (T), exponent (int32), x (T).
#pragma once

#include <ATen/iter/Loops.h>
#include <ATen/vec/ScalarMath.h>

namespace at::native {
inline namespace CRESSET_ISA {

namespace detail {
// Mantissa and exponent from the bits of a normal number; the C library for the others.
template <class C> C10_ALWAYS_INLINE C split_number(C x, int& exponent) {
  using I = vec::int_of<C>;
  constexpr int kBits = sizeof(C) == sizeof(float) ? 23 : 52;
  constexpr I kField = sizeof(C) == sizeof(float) ? 0xff : 0x7ff;
  I bits;
  __builtin_memcpy(&bits, &x, sizeof(C));
  const I field = (bits >> kBits) & kField;
  if (C10_UNLIKELY(field == 0 || field == kField)) {
    exponent = 0;
    return vm::isfinite(x) ? static_cast<C>(__builtin_frexp(x, &exponent)) : x;
  }
  exponent = static_cast<int>(field) - static_cast<int>(kField / 2 - 1);
  bits = (bits & ~(kField << kBits)) | ((kField / 2 - 1) << kBits);
  __builtin_memcpy(&x, &bits, sizeof(C));
  return x;
}

template <class T>
void frexp_loop(char* const* data, const int64_t* strides, int64_t n, const void*) {
  char* mantissa = data[0];
  char* exponent = data[1];
  const char* from = data[2];
  for (int64_t i = 0; i < n; ++i) {
    using C = vec::opmath_t<T>;
    int e;
    const C m = split_number(load_element<T, C>(from), e);
    store_element<T>(mantissa, m);
    store_element<int32_t>(exponent, e);
    mantissa += strides[0];
    exponent += strides[1];
    from += strides[2];
  }
}
} // namespace detail

template <class... Ts> constexpr LoopTable make_frexp_table(TypeList<Ts...>) {
  LoopTable table{};
  ((table.loop[static_cast<int>(c10::scalar_type_of<Ts>)] = &detail::frexp_loop<Ts>), ...);
  return table;
}

} // namespace CRESSET_ISA
} // namespace at::native
