// Types of values as C++ programs name them: `at::ListType::create(at::TensorType::get())`. A type
// is what a schema says of an argument; two are equal when schemas would print the same text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/FunctionSchema.h>

namespace c10 {

using TypeKind = ::at::SchemaType::Kind;

class Type {
 public:
  explicit Type(::at::SchemaType schema) : schema_(std::move(schema)) {}
  std::string str() const { return schema_.str(); }
  std::string annotation_str() const { return schema_.str(); }
  const ::at::SchemaType& schema() const { return schema_; }
  bool is_list() const { return schema_.is_list || schema_.kind == TypeKind::List; }
  bool is_optional() const { return schema_.optional; }
  friend bool operator==(const Type& a, const Type& b) { return a.str() == b.str(); }
  friend bool operator!=(const Type& a, const Type& b) { return !(a == b); }

 private:
  ::at::SchemaType schema_;
};
using TypePtr = std::shared_ptr<const Type>;

namespace detail {
inline TypePtr type_of(::at::SchemaType schema) {
  return std::make_shared<const Type>(std::move(schema));
}
inline TypePtr type_of(TypeKind kind) {
  ::at::SchemaType schema;
  schema.kind = kind;
  return type_of(std::move(schema));
}
inline std::vector<::at::SchemaType> schemas_of(const std::vector<TypePtr>& types) {
  std::vector<::at::SchemaType> out;
  for (const TypePtr& type : types) {
    TORCH_CHECK_TYPE(type != nullptr, "a type is made of types, got a null pointer");
    out.push_back(type->schema());
  }
  return out;
}
} // namespace detail

#define CRESSET_SIMPLE_TYPE(Name, member)                                                          \
  struct Name##Type {                                                                              \
    static TypePtr get() { return detail::type_of(TypeKind::member); }                             \
  };
CRESSET_SIMPLE_TYPE(Tensor, Tensor)
CRESSET_SIMPLE_TYPE(Int, Int)
CRESSET_SIMPLE_TYPE(Float, Float)
CRESSET_SIMPLE_TYPE(Bool, Bool)
CRESSET_SIMPLE_TYPE(String, Str)
CRESSET_SIMPLE_TYPE(Number, Scalar)
CRESSET_SIMPLE_TYPE(Complex, Complex)
CRESSET_SIMPLE_TYPE(None, None)
CRESSET_SIMPLE_TYPE(Any, Any)
CRESSET_SIMPLE_TYPE(DeviceObj, Device)
CRESSET_SIMPLE_TYPE(Generator, Generator)
CRESSET_SIMPLE_TYPE(Storage, Storage)
#undef CRESSET_SIMPLE_TYPE

struct ListType {
  static TypePtr create(const TypePtr& element) {
    return detail::type_of(::at::SchemaType::list_of(detail::schemas_of({element})[0]));
  }
  static TypePtr ofTensors() { return create(TensorType::get()); }
  static TypePtr ofInts() { return create(IntType::get()); }
  static TypePtr ofFloats() { return create(FloatType::get()); }
  static TypePtr ofBools() { return create(BoolType::get()); }
  static TypePtr ofStrings() { return create(StringType::get()); }
};
struct OptionalType {
  static TypePtr create(const TypePtr& element) {
    ::at::SchemaType schema = detail::schemas_of({element})[0];
    schema.optional = true;
    return detail::type_of(std::move(schema));
  }
  static TypePtr ofTensor() { return create(TensorType::get()); }
};
struct DictType {
  static TypePtr create(const TypePtr& key, const TypePtr& value) {
    return detail::type_of(
        ::at::SchemaType::container(TypeKind::Dict, detail::schemas_of({key, value})));
  }
};
struct TupleType {
  static TypePtr create(const std::vector<TypePtr>& elements) {
    return detail::type_of(
        ::at::SchemaType::container(TypeKind::Tuple, detail::schemas_of(elements)));
  }
};

} // namespace c10

namespace at {
using c10::AnyType;
using c10::BoolType;
using c10::ComplexType;
using c10::DeviceObjType;
using c10::DictType;
using c10::FloatType;
using c10::GeneratorType;
using c10::IntType;
using c10::ListType;
using c10::NoneType;
using c10::NumberType;
using c10::OptionalType;
using c10::StorageType;
using c10::StringType;
using c10::TensorType;
using c10::TupleType;
using c10::TypePtr;
} // namespace at
