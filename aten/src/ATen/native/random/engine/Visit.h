#pragma once

// From a run-time dtype to a C++ type, for the random fills.

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace at::native::random {

using c10::ScalarType;
using c10::TypeTag;

[[noreturn]] C10_COLD inline void throw_no_kernel(const char* kernel, ScalarType dtype) {
  throw c10::NotImplementedError(
      c10::str("\"", kernel, "\" not implemented for '", c10::toString(dtype), "'"));
}

/// f(TypeTag<T>) for float16, bfloat16, float32, float64.
template <class F> void visit_floating(ScalarType dtype, const char* kernel, const F& f) {
  switch (dtype) {
  case ScalarType::Float:
    return f(TypeTag<float>{});
  case ScalarType::Double:
    return f(TypeTag<double>{});
  case ScalarType::Half:
    return f(TypeTag<c10::Half>{});
  case ScalarType::BFloat16:
    return f(TypeTag<c10::BFloat16>{});
  default:
    throw_no_kernel(kernel, dtype);
  }
}

/// The same for these and the five integer types of old.
template <class F> void visit_common(ScalarType dtype, const char* kernel, const F& f) {
  switch (dtype) {
  case ScalarType::Byte:
    return f(TypeTag<uint8_t>{});
  case ScalarType::Char:
    return f(TypeTag<int8_t>{});
  case ScalarType::Short:
    return f(TypeTag<int16_t>{});
  case ScalarType::Int:
    return f(TypeTag<int32_t>{});
  case ScalarType::Long:
    return f(TypeTag<int64_t>{});
  default:
    return visit_floating(dtype, kernel, f);
  }
}

/// The same and bool.
template <class F> void visit_common_and_bool(ScalarType dtype, const char* kernel, const F& f) {
  if (dtype == ScalarType::Bool) return f(TypeTag<bool>{});
  visit_common(dtype, kernel, f);
}

/// The same and the wider unsigned types.
template <class F> void visit_real(ScalarType dtype, const char* kernel, const F& f) {
  switch (dtype) {
  case ScalarType::UInt16:
    return f(TypeTag<uint16_t>{});
  case ScalarType::UInt32:
    return f(TypeTag<uint32_t>{});
  case ScalarType::UInt64:
    return f(TypeTag<uint64_t>{});
  default:
    return visit_common_and_bool(dtype, kernel, f);
  }
}

} // namespace at::native::random
