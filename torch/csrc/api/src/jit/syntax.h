// The text of scripted archives, and of torch::jit::compile, as syntax trees. Archives hold a small
// part of Python: definitions of classes and functions, assignments, conditions, loops and calls.
// What people write has operators besides; they become the calls that archives have in their place.
// Text comes from files, so every depth is bounded and what is not in the language is an Error that
// names the line.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch::jit::source {

struct Expr {
  enum class Kind : uint8_t {
    Name,
    Int,
    Float,
    Complex, // real: the imaginary part
    String,
    None,
    True,
    False,
    Attribute, // items: owner; text: name
    Call,      // items: function, positional arguments
    Subscript, // items: owner, index
    List,
    Tuple,
    Dict, // items: key, value, key, value, ...
    Negate,
    Select, // items: condition, value where it holds, value where it does not
  };
  Kind kind = Kind::None;
  int line = 0;
  std::string text;
  int64_t integer = 0;
  double real = 0;
  std::vector<std::unique_ptr<Expr>> items;
  std::vector<std::pair<std::string, std::unique_ptr<Expr>>> keywords;
  // a.b.c of names and attributes; empty for anything else.
  std::string dotted() const;
};
using ExprPtr = std::unique_ptr<Expr>;

struct Parameter {
  std::string name;
  ExprPtr type, value;
};

struct Stmt {
  enum class Kind : uint8_t {
    Assign,
    Declare,
    Expr,
    Return,
    If,
    While,
    For,
    With,
    Def,
    Class,
    Pass,
    Break,
    Continue,
    Block // body: statements that stand for one
  };
  Kind kind = Kind::Pass;
  int line = 0;
  bool in_place = false;             // of an Assign: target += ..., whose value is the whole sum
  std::string name;                  // of a Def or Class
  ExprPtr target, type, value;       // Declare: target : type = value
  std::vector<Parameter> parameters; // of a Def, whose result type is `type`
  std::vector<ExprPtr> bases;        // of a Class
  std::vector<std::unique_ptr<Stmt>> body, other;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

// The statements of a file. `path` is named in errors.
Body parse(std::string_view text, const std::string& path);

} // namespace torch::jit::source
