// The schema of an operator as data, parsed from PyTorch's schema language:
//   add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/IValue.h>

namespace at {

struct TORCH_API SchemaType {
  enum class Kind : uint8_t {
    Tensor,
    Int,
    SymInt,
    Float,
    Bool,
    Str,
    Scalar,
    ScalarType,
    Layout,
    Device,
    MemoryFormat,
    Generator,
    Storage,
    Stream,
    Complex,
    Dimname,
    QScheme,
    Any,
    Var,
    None,
    Class, // a class registered by torch::class_: class_name
    Tuple, // contained: its types
    Dict,  // contained: of the keys, of the values
    List,  // contained: the type of the elements, where `is_list` cannot say it
  };
  Kind kind = Kind::Tensor;
  bool is_list = false;
  int64_t list_size = -1;        // N of int[N], or -1
  bool element_optional = false; // Tensor?[]
  bool optional = false;         // int[]? or Tensor?
  std::string class_name{};      // "__torch__.torch.classes.ns.Name"
  std::vector<SchemaType> contained{};
  std::string str() const;
  static SchemaType list_of(SchemaType element);
  static SchemaType container(Kind kind, std::vector<SchemaType> contained);
};

struct TORCH_API AliasInfo {
  std::string before; // "a", "a|b", "*" ...
  bool is_write = false;
  std::string after; // the set after the call, when it differs ("a -> *")
};

struct TORCH_API SchemaArgument {
  std::string name;
  SchemaType type;
  std::optional<AliasInfo> alias{};
  bool has_default = false;
  IValue default_value{};
  std::string default_text{};
  bool kwarg_only = false;
  bool is_out = false;
  std::string str() const;
};

struct TORCH_API FunctionSchema {
  std::string name;     // "aten::add"
  std::string overload; // "Tensor"
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaArgument> returns;
  bool is_vararg = false;
  bool is_varret = false;
  std::string str() const; // with the namespace, as PyTorch prints it
  bool is_mutable() const;
  bool is_view() const; // returns an alias of an argument it does not write

  // Error naming the position when the text is not a schema.
  static FunctionSchema parse(const std::string& text);
};

} // namespace at
