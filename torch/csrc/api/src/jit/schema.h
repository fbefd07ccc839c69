// Types of scripted code and schemas of what it calls, for the compiler of archives. A type is
// known by the name that annotations give it: two types are the same when their names are.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/csrc/jit/program.h>

namespace torch::jit::source {

// ---- types
TypePtr simple_type(Type::Kind kind);
TypePtr list_of(const TypePtr& element);
TypePtr optional_of(const TypePtr& element);
TypePtr future_of(const TypePtr& element);
TypePtr dict_of(const TypePtr& key, const TypePtr& value);
TypePtr tuple_of(std::vector<TypePtr> elements);
TypePtr union_of(const std::vector<TypePtr>& members);
inline bool same(const TypePtr& a, const TypePtr& b) { return a->name == b->name; }
bool is_subtype(const TypePtr& a, const TypePtr& b);
// The type of a variable that two paths give values of these types; null when there is none.
TypePtr unify(const TypePtr& a, const TypePtr& b);
// The element of an Optional, or the type itself.
inline const TypePtr& plain(const TypePtr& type) {
  return type->kind == Type::Kind::Optional ? type->inner[0] : type;
}
// The type of a constant.
TypePtr type_of_value(const IValue& value);

// ---- schemas
struct Formal {
  std::string name;
  TypePtr type;
  int64_t size = -1; // N of int[N]
  bool has_default = false, kwarg_only = false;
  IValue value; // the default
};
// A type variable of a schema has a name that starts with '$'.
inline bool is_variable(const Type& type) { return !type.name.empty() && type.name[0] == '$'; }
bool has_variable(const Type& type);
using Bindings = std::unordered_map<std::string, TypePtr>;
// Whether `actual` fits `formal`, whose variables it binds.
bool bind_type(const TypePtr& formal, const TypePtr& actual, Bindings& bound);
TypePtr substitute(const TypePtr& type, const Bindings& bound);

struct Schema {
  std::string name, overload;
  std::vector<Formal> arguments;
  std::vector<TypePtr> returns;
  bool vararg = false;
  const at::OperatorEntry* entry = nullptr; // of an operator of the dispatcher
  BuiltinFn builtin = nullptr;              // of the interpreter's own
  std::string text;
};
// Every overload of "aten::add": those of the dispatcher, then the interpreter's own.
std::vector<Schema> schemas_of(const std::string& name);

} // namespace torch::jit::source
