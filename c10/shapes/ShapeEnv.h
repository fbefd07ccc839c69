// The symbols of one traced program, what the trace decided about them, and the handles under which
// tensors and Python know them.
//
// Note [Backed and unbacked symbols]
// A backed symbol is a size of an input: it has a value in the traced run, its hint. A decision
// about backed symbols is taken by the hints and recorded as a guard, a condition on inputs under
// which the trace is valid. An unbacked symbol comes out of the program (the length of `nonzero`)
// and has no value: a decision about it raises DataDependentError, unless what is known decides
// it; what the program states about it becomes a check at run time.
//
// Note [Replacements that are shown]
// Facts may solve any equation to decide later questions. Text, and what handles show, follows
// fewer of them: a backed symbol by what it equals, an unbacked one by a number or by one symbol.
// So the expressions in a traced graph keep the symbols that the graph computes.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include <c10/core/SymNumbers.h>
#include <c10/sym/Facts.h>
#include <c10/sym/Program.h>

namespace c10::shapes {

using sym::Expr;
using sym::Interval;
using sym::Value;

struct Guard {
  Expr condition;
  std::string origin; // where the decision was taken
  bool size_oblivious = false;
};

struct RuntimeAssert {
  Expr condition;
  std::string message;
};

// What is known of a symbol besides its range.
struct SymbolState {
  bool backed = false;
  bool size_like = false; // an unbacked size: size-oblivious questions take it to be 2 or more
  std::optional<Value> hint;
};

class ShapeNode;

// Every call may come from any thread; a lock orders them.
class C10_API ShapeEnv : public std::enable_shared_from_this<ShapeEnv> {
 public:
  static std::shared_ptr<ShapeEnv> create();
  ~ShapeEnv();
  ShapeEnv(const ShapeEnv&) = delete;
  ShapeEnv& operator=(const ShapeEnv&) = delete;

  // ---- symbols
  // A backed symbol has a hint. `ephemeral` ones are solved for first.
  Expr new_symbol(std::string name, sym::Sort sort, std::optional<Value> hint, Interval range,
                  bool ephemeral = false);
  const SymbolState& state(Expr symbol) const { return states_.at(symbol); }
  SymbolState& state(Expr symbol) { return states_.at(symbol); }
  bool is_backed(Expr e) const;
  // Narrows the range of a symbol; false where nothing would be left.
  bool constrain(Expr e, Interval range);
  void mark_size_like(Expr symbol);
  Interval range(Expr e) { return facts_.range(e); }

  // ---- expressions and handles
  sym::Arena& arena() { return arena_; }
  // The expression behind a raw number: an integer, or a handle of this environment.
  Expr expr_of(int64_t raw);
  // A handle, also of a constant.
  int64_t handle_of(Expr e);
  // A plain number where the expression is an integer or truth constant, else a handle.
  int64_t raw_of(Expr e);
  // An operation on expressions, sorts as Python mixes them. `right` is null for one operand.
  Expr apply(SymOp op, Expr left, Expr right);
  // What handles show of an expression (Note [Replacements that are shown]).
  Expr shown(Expr e);
  Expr simplify(Expr e);
  const std::map<Expr, Expr>& shown_replacements() const { return shown_; }

  // ---- decisions
  std::optional<Value> hint_of(Expr e);
  // Known for all values of the symbols.
  std::optional<bool> known(Expr condition, bool size_oblivious = false);
  // By what is known, or by hints with a guard; DataDependentError.
  bool evaluate(Expr condition, const char* where, bool size_oblivious = false);
  bool evaluate_or(Expr condition, bool otherwise, const char* where);
  // The value, fixed by a guard.
  Value specialise(Expr number, const char* where);
  bool expect_true(Expr condition, const char* where);
  // A check at run time that is known to hold from now on.
  bool defer(Expr condition, std::string message);
  // Adds a guard without a decision.
  void add_guard(Expr condition, std::string origin, bool size_oblivious = false);

  const std::vector<Guard>& guards() const { return guards_; }
  // By the newest unbacked symbol in the condition; null for conditions on backed ones.
  const std::map<Expr, std::vector<RuntimeAssert>>& asserts() const { return asserts_; }
  // All guards over `inputs`, which are the backed symbols.
  sym::Program guard_program(ArrayRef<Expr> inputs) const;
  uint64_t version() const { return facts_.version(); }

  // ---- settings
  bool frozen = false;                 // decisions add no guards any more
  bool defer_instead_of_guard = false; // what the program states is checked at run time
  // Set by the Python layer: the program's line of the decision being taken.
  std::function<std::string(const char* where)> origin;
  std::function<void(const Guard&)> on_guard;
  // What keeps the environment alive on behalf of a tensor; itself unless the Python layer asks
  // for its own object.
  std::function<std::shared_ptr<void>()> owner;
  void* pyobj = nullptr; // the Python object that stands for this environment, borrowed

  const int64_t* keep(ArrayRef<int64_t> list);
  std::recursive_mutex& mutex() { return mutex_; }
  uint32_t id() const { return id_; }

 private:
  ShapeEnv();
  bool holds_by_hint(Expr condition);
  void record(Expr condition, const char* where, bool size_oblivious);
  void learn(Expr condition);
  void show_new_replacements();
  [[noreturn]] void throw_data_dependent(Expr asked);
  std::string text(Expr e) const;

  std::recursive_mutex mutex_;
  sym::Arena arena_;
  sym::Facts facts_, oblivious_;
  uint32_t id_;
  std::map<Expr, SymbolState> states_;
  std::unordered_map<Expr, int64_t> handles_;
  std::unordered_map<Expr, std::optional<Value>> hints_;
  std::map<Expr, Expr> shown_;
  std::unordered_map<Expr, Expr> shown_memo_;
  size_t replacements_seen_ = 0;
  std::vector<Guard> guards_;
  std::set<Expr> guarded_;
  std::map<Expr, std::vector<RuntimeAssert>> asserts_;
  std::set<std::vector<int64_t>> lists_;
};

// The node behind every handle of a ShapeEnv.
class C10_API ShapeNode final : public SymNodeImpl {
 public:
  ShapeNode(ShapeEnv* env, Expr expr) : env_(env), expr_(expr) {}
  SymSort sort() const override { return static_cast<SymSort>(expr_->sort); }
  int64_t apply(SymOp op, int64_t left, int64_t right) override;
  int64_t guard_int(const char* file, int line) override;
  double guard_float(const char* file, int line) override;
  bool guard_bool(const char* file, int line) override;
  bool guard_or(bool otherwise, const char* file, int line) override;
  std::optional<bool> known() override;
  bool expect_true(const char* file, int line) override;
  std::optional<int64_t> hint() override;
  std::string str() override;
  std::shared_ptr<void> owner() override;
  const int64_t* keep(ArrayRef<int64_t> list) override { return env_->keep(list); }

  ShapeEnv* env() const { return env_; }
  Expr expr() const { return expr_; }
  void* pyobj = nullptr; // the Python node, borrowed

 private:
  ShapeEnv* env_;
  Expr expr_;
};

// The node behind a handle, or null where it is of another kind than ShapeEnv's.
C10_API ShapeNode* shape_node(int64_t raw);

} // namespace c10::shapes
