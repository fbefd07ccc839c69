// c10::FunctionSchema and c10::Argument as C++ programs ask them: by methods. Both look at the
// schema of an operator (ATen/core/FunctionSchema.h), which lives as long as the operator.
#pragma once
#include <string>
#include <vector>

#include <ATen/core/FunctionSchema.h>

namespace c10 {

class Argument {
 public:
  explicit Argument(const at::SchemaArgument& of) : of_(&of) {}
  const std::string& name() const { return of_->name; }
  const at::SchemaType& type() const { return of_->type; }
  std::optional<at::IValue> default_value() const {
    if (!of_->has_default) return std::nullopt;
    return of_->default_value;
  }
  bool kwarg_only() const { return of_->kwarg_only; }
  bool is_out() const { return of_->is_out; }
  // Null where the schema writes no letter.
  const at::AliasInfo* alias_info() const { return of_->alias ? &*of_->alias : nullptr; }

 private:
  const at::SchemaArgument* of_;
};

struct OperatorName {
  std::string name;
  std::string overload_name;
  friend bool operator==(const OperatorName& a, const OperatorName& b) {
    return a.name == b.name && a.overload_name == b.overload_name;
  }
};
inline std::string toString(const OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

class FunctionSchema {
 public:
  explicit FunctionSchema(const at::FunctionSchema& of) : of_(&of) {
    for (const at::SchemaArgument& each : of.arguments) arguments_.emplace_back(each);
    for (const at::SchemaArgument& each : of.returns) returns_.emplace_back(each);
  }
  const std::string& name() const { return of_->name; }
  const std::string& overload_name() const { return of_->overload; }
  OperatorName operator_name() const { return {of_->name, of_->overload}; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<Argument>& returns() const { return returns_; }
  bool is_vararg() const { return of_->is_vararg; }
  bool is_mutable() const { return of_->is_mutable(); }

 private:
  friend std::string toString(const FunctionSchema& schema) { return schema.of_->str(); }
  template <class Stream> friend Stream& operator<<(Stream& out, const FunctionSchema& schema) {
    out << schema.of_->str();
    return out;
  }
  const at::FunctionSchema* of_;
  std::vector<Argument> arguments_;
  std::vector<Argument> returns_;
};

} // namespace c10
