// A value of any type, for arguments and results of modules whose types are not known.
#pragma once
#include <any>
#include <typeinfo>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>

namespace torch::nn {

class AnyValue {
 public:
  AnyValue(const AnyValue&) = default;
  AnyValue(AnyValue&&) = default;
  AnyValue& operator=(const AnyValue&) = default;
  AnyValue& operator=(AnyValue&&) = default;
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue>>>
  explicit AnyValue(T&& value) : value_(std::decay_t<T>(std::forward<T>(value))) {}

  // Null when the value is of another type.
  template <class T> T* try_get() {
    static_assert(!std::is_reference_v<T> && !std::is_array_v<T>,
                  "AnyValue stores decayed types, you cannot cast it to a reference or array");
    return std::any_cast<T>(&value_);
  }
  template <class T> T get() {
    T* value = try_get<T>();
    if (value == nullptr) throw_cast(typeid(T));
    return *value;
  }
  const std::type_info& type_info() const noexcept { return value_.type(); }

 private:
  [[noreturn]] void throw_cast(const std::type_info& wanted) const {
    const std::string held = c10::demangle(type_info().name());
    throw c10::Error(c10::str("Attempted to cast AnyValue to ", c10::demangle(wanted.name()),
                              ", but its actual type is ", held));
  }
  std::any value_;
};

} // namespace torch::nn
