// See Number.h.
#include <ATen/iter/Number.h>

#include <cstring>
#include <limits>

namespace at::iter {
namespace {

// Without a check: integers by their low bits, floating numbers by IEEE conversion.
template <class T> T wrapped(const Scalar& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) {
    return value.to<T>();
  } else if constexpr (c10::is_complex_v<T>) {
    using R = typename T::value_type;
    const c10::complex<double> z = value.toComplexDouble();
    return T(static_cast<R>(z.real_), static_cast<R>(z.imag_));
  } else if constexpr (std::is_integral_v<T>) {
    if (!value.isIntegral(true)) return value.to<T>();
    return static_cast<T>(value.type() == ScalarType::UInt64 ? value.to<uint64_t>()
                                                             : value.to<int64_t>());
  } else {
    return static_cast<T>(static_cast<float>(value.to<double>()));
  }
}

template <class T> bool fits(const Scalar& value) {
  if constexpr (std::is_same_v<T, bool> || c10::is_complex_v<T> || std::is_same_v<T, double>) {
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    if (!value.isIntegral(true)) return true;
    if (value.type() == ScalarType::UInt64) {
      return value.to<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max());
    }
    const int64_t number = value.to<int64_t>();
    if constexpr (std::is_same_v<T, uint64_t>) return number >= 0;
    return number == static_cast<int64_t>(static_cast<T>(number));
  } else {
    const double number = value.to<double>();
    if (number - number != 0) return true; // infinite or NaN
    const double stored = static_cast<float>(static_cast<T>(static_cast<float>(number)));
    return std::is_same_v<T, float> ? stored - stored == 0 : stored == number;
  }
}
} // namespace

bool number_fits(const Scalar& value, ScalarType type) {
  switch (type) {
#define CASE(T, Name)                                                                              \
  case ScalarType::Name:                                                                           \
    return fits<T>(value);
    CRESSET_FORALL_ARITHMETIC_TYPES(CASE)
#undef CASE
  default:
    return false;
  }
}

void store_number(const Scalar& value, ScalarType type, NumberRule rule, void* where) {
  switch (type) {
#define CASE(T, Name)                                                                              \
  case ScalarType::Name: {                                                                         \
    const T number = rule == NumberRule::Checked ? value.to<T>() : wrapped<T>(value);              \
    std::memcpy(where, &number, sizeof(T));                                                        \
    return;                                                                                        \
  }
    CRESSET_FORALL_ARITHMETIC_TYPES(CASE)
#undef CASE
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "scalars of type ", type, " are not implemented");
  }
}

} // namespace at::iter
