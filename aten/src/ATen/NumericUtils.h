// Questions about numbers of any dtype, on the host and on the device.
#pragma once
#include <cmath>
#include <type_traits>

#include <c10/macros/Macros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

namespace at {

// NaN is the one value that differs from itself.
template <class T> C10_HOST_DEVICE inline bool _isnan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else if constexpr (c10::is_complex_v<T>)
    return _isnan(value.real()) || _isnan(value.imag());
  else
    return static_cast<float>(value) != static_cast<float>(value);
}
template <class T> C10_HOST_DEVICE inline bool _isinf(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else if constexpr (std::is_same_v<T, double>)
    return value == HUGE_VAL || value == -HUGE_VAL;
  else
    return static_cast<float>(value) == HUGE_VALF || static_cast<float>(value) == -HUGE_VALF;
}

} // namespace at
