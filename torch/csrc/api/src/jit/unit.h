// The code of one archive: its classes and functions, found by name and compiled for the
// interpreter when they are first needed. Names mean what the archive format says: `torch.x` and
// `ops.ns.x` are operators, `__torch__.a.b` is a class or function of the archive, `CONSTANTS.c0` a
// constant.
#pragma once
#include <functional>
#include <map>
#include <optional>

#include <torch/csrc/api/src/jit/schema.h>
#include <torch/csrc/api/src/jit/syntax.h>

namespace torch::jit::source {

// A function or method: what it takes is known when it is declared, its code when it is compiled.
struct Callable {
  std::string name;
  std::vector<Formal> arguments;
  TypePtr returns;
  const Stmt* node = nullptr;
  std::string path;
  std::shared_ptr<Function> function = std::make_shared<Function>();
  bool begun = false; // its code is compiled, or is being compiled
};

// A class of the archive. For named tuples and enumerations only `type` and `members` are used.
struct Class {
  TypePtr type;                                            // its `cls` has the slots
  std::vector<std::pair<std::string, TypePtr>> attributes; // in the order of the slots
  std::map<std::string, std::string> roles;                // parameter, buffer
  std::map<std::string, IValue> constants;
  std::map<std::string, std::unique_ptr<Callable>> methods;
  std::map<std::string, IValue> members; // of an enumeration
  bool is_module = false;
  TypePtr attribute(const std::string& name) const; // null when there is none
};

class Unit {
 public:
  // `read` gives the text of a source file, or nothing.
  using Read = std::function<std::optional<std::string>(const std::string& path)>;
  Unit(Read read, std::vector<IValue> constants);
  ~Unit();

  Class* find_class(const std::string& name); // null when the archive has none
  Callable* find_function(const std::string& name);
  Class* class_of(const Type& type) { return find_class(type.name); }
  // The type that an annotation means.
  TypePtr type_of(const Expr& annotation);
  // A constant expression: numbers, text, lists and tuples of them.
  IValue constant_of(const Expr& value, const TypePtr& type);
  const IValue& constant(const std::string& name) const;
  const std::vector<Schema>& schemas(const std::string& name);
  // Compiles what was declared and not compiled yet; called once everything needed was found.
  void compile_pending();
  std::unique_ptr<Callable> declare(const Stmt& node, const std::string& path,
                                    const std::string& name);

 private:
  const Stmt* definition(const std::string& name, std::string* path);
  Class* make_class(const std::string& name, const Stmt& node, const std::string& path);
  void add_member(Class& made, const Stmt& step, const std::string& path);
  void make_named_tuple(Class& made, const std::string& name, const Stmt& node);
  void make_enumeration(Class& made, const std::string& name, const Stmt& node);

  Read read_;
  std::vector<IValue> constants_;
  std::map<std::string, Body> files_;
  std::map<std::string, std::unique_ptr<Class>> classes_;
  std::map<std::string, std::unique_ptr<Callable>> functions_;
  std::map<std::string, std::vector<Schema>> schemas_;
  std::vector<Callable*> pending_;
  int depth_ = 0;
};

// Fills `callable.function` with the code of its definition, once. `captured` are variables of an
// outer function that come before its own parameters.
void compile(Unit& unit, Callable& callable,
             const std::vector<std::pair<std::string, TypePtr>>& captured = {});
// Lets the last reader of each register empty it. `loops` are ranges of instructions.
void mark_last_uses(Function& function, size_t registers,
                    const std::vector<std::pair<size_t, size_t>>& loops);
// Whether what comes behind these statements is never reached from them.
bool leaves(const Body& steps);
// The variable that is known not to be None when the test has this outcome; empty for other tests.
std::string not_none(const Expr& test, bool holds);
// Names that a nested function reads and does not define.
std::vector<std::string> free_names(const Stmt& function);

} // namespace torch::jit::source
