// caffe2::TypeMeta: the older name for an element type in C++ interfaces. Here a dtype is a
// ScalarType everywhere; this class converts both ways, so that code written with it compiles.
#pragma once
#include <optional>
#include <string_view>

#include <c10/core/ScalarType.h>

namespace caffe2 {

class TypeMeta {
 public:
  constexpr TypeMeta() = default;
  constexpr TypeMeta(c10::ScalarType type) : type_(type) {}
  template <class T> static constexpr TypeMeta Make() { return c10::scalar_type_of<T>; }
  static constexpr TypeMeta fromScalarType(c10::ScalarType type) { return type; }
  constexpr c10::ScalarType toScalarType() const { return type_; }
  constexpr operator c10::ScalarType() const { return type_; }
  constexpr bool isScalarType(c10::ScalarType type) const { return type_ == type; }
  template <class T> constexpr bool Match() const { return type_ == c10::scalar_type_of<T>; }
  size_t itemsize() const { return static_cast<size_t>(c10::elementSize(type_)); }
  std::string_view name() const { return c10::info(type_).name; }

 private:
  c10::ScalarType type_ = c10::ScalarType::Undefined;
};

} // namespace caffe2

namespace c10 {
constexpr ScalarType typeMetaToScalarType(ScalarType type) { return type; }
constexpr caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType type) { return type; }
inline std::optional<ScalarType> optTypeMetaToScalarType(std::optional<caffe2::TypeMeta> type) {
  if (!type) return std::nullopt;
  return type->toScalarType();
}
} // namespace c10
