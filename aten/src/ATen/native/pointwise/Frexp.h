// frexp, the one operator here with two outputs of different types: x = mantissa * 2^exponent with
// the mantissa in [0.5, 1). The loop's operands are mantissa (T), exponent (int32), x (T).
#pragma once

#include <ATen/iter/Loops.h>
#include <ATen/vec/ScalarMath.h>

namespace at::native {
inline namespace CRESSET_ISA {

namespace detail {
template <class T>
void frexp_loop(char* const* data, const int64_t* strides, int64_t n, const void*) {
  char* mantissa = data[0];
  char* exponent = data[1];
  const char* from = data[2];
  for (int64_t i = 0; i < n; ++i) {
    int e = 0;
    const double x = load_element<T, double>(from);
    const bool finite = vm::isfinite(x);
    const double m = finite ? __builtin_frexp(x, &e) : x;
    store_element<T>(mantissa, m);
    store_element<int32_t>(exponent, finite ? e : 0);
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
