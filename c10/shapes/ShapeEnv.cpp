// Symbols, handles and decisions. See the notes in ShapeEnv.h; operations are in Operations.cpp.
#include <c10/shapes/ShapeEnv.h>

#include <algorithm>

#include <c10/sym/Print.h>

namespace c10::shapes {

using Lock = std::lock_guard<std::recursive_mutex>;
using sym::Kind;
using sym::Sort;

std::shared_ptr<ShapeEnv> ShapeEnv::create() { return std::shared_ptr<ShapeEnv>(new ShapeEnv); }

ShapeEnv::ShapeEnv() : facts_(arena_), oblivious_(arena_), id_(new_symbolic_environment()) {}
ShapeEnv::~ShapeEnv() { release_symbolic_nodes(id_); }

std::string ShapeEnv::text(Expr e) const { return sym::print(arena_, e); }

// ---- symbols
Expr ShapeEnv::new_symbol(std::string name, Sort sort, std::optional<Value> hint, Interval range,
                          bool ephemeral) {
  const Lock lock(mutex_);
  const Expr symbol = arena_.symbol(std::move(name), sort);
  SymbolState& state = states_[symbol];
  state.backed = hint.has_value();
  state.hint = hint;
  // What has no value in the traced run is expressed by what has.
  if (!hint || ephemeral) {
    facts_.prefer(symbol);
    oblivious_.prefer(symbol);
  }
  if (sort == Sort::Int) constrain(symbol, range);
  return symbol;
}

bool ShapeEnv::is_backed(Expr e) const {
  const std::vector<Expr> symbols = sym::symbols_in(e);
  return std::all_of(symbols.begin(), symbols.end(),
                     [&](Expr s) { return states_.at(s).hint.has_value(); });
}

bool ShapeEnv::constrain(Expr e, Interval range) {
  const Lock lock(mutex_);
  if (!facts_.bound(e, range)) return false;
  oblivious_.bound(e, range);
  show_new_replacements();
  return true;
}

void ShapeEnv::mark_size_like(Expr symbol) {
  const Lock lock(mutex_);
  states_.at(symbol).size_like = true;
  oblivious_.bound(symbol, {2, INT64_MAX});
}

// ---- handles
int64_t ShapeEnv::handle_of(Expr e) {
  const Lock lock(mutex_);
  const auto found = handles_.find(e);
  if (found != handles_.end()) return found->second;
  const int64_t raw = make_symbolic(id_, std::make_unique<ShapeNode>(this, e));
  handles_[e] = raw;
  return raw;
}

int64_t ShapeEnv::raw_of(Expr e) {
  if (e->kind == Kind::Integer && e->integer >= SymInt::kSymbolicBound) return e->integer;
  if (e->kind == Kind::Truth) return e->integer != 0;
  return handle_of(e);
}

Expr ShapeEnv::expr_of(int64_t raw) {
  if (raw >= SymInt::kSymbolicBound) return arena_.integer(raw);
  const ShapeNode* node = shape_node(raw);
  TORCH_CHECK(node != nullptr && node->env() == this,
              "symbolic numbers of different shape environments cannot be used together");
  return node->expr();
}

const int64_t* ShapeEnv::keep(ArrayRef<int64_t> list) {
  const Lock lock(mutex_);
  return lists_.emplace(list.begin(), list.end()).first->data();
}

// ---- what handles show
Expr ShapeEnv::simplify(Expr e) {
  const Lock lock(mutex_);
  return facts_.simplify(e);
}

Expr ShapeEnv::shown(Expr e) {
  const Lock lock(mutex_);
  if (shown_.empty() || sym::is_constant(e)) return e;
  const auto memo = shown_memo_.find(e);
  if (memo != shown_memo_.end()) return memo->second;
  Expr out = e;
  if (e->kind == Kind::Symbol) {
    const auto found = shown_.find(e);
    if (found != shown_.end()) out = shown(found->second);
  } else {
    SmallVector<Expr, 8> operands;
    for (Expr a : e->operands()) operands.push_back(shown(a));
    if (!std::equal(operands.begin(), operands.end(), e->args)) out = arena_.rebuild(e, operands);
  }
  shown_memo_[e] = out;
  return out;
}

void ShapeEnv::show_new_replacements() {
  const auto& replaced = facts_.replacements();
  for (; replacements_seen_ < replaced.size(); ++replacements_seen_) {
    const auto [symbol, by] = replaced[replacements_seen_];
    const bool simple = sym::is_constant(by) || by->kind == Kind::Symbol;
    if (!states_.at(symbol).backed && !simple) continue;
    shown_[symbol] = by;
    shown_memo_.clear();
  }
  // A range of one value is a number too.
  for (auto& [symbol, state] : states_) {
    if (symbol->sort != Sort::Int || shown_.count(symbol) != 0) continue;
    const Interval range = facts_.range(symbol);
    if (!range.is_point()) continue;
    shown_[symbol] = arena_.integer(range.low);
    shown_memo_.clear();
  }
}

// ---- decisions
std::optional<Value> ShapeEnv::hint_of(Expr e) {
  const Lock lock(mutex_);
  const auto memo = hints_.find(e);
  if (memo != hints_.end()) return memo->second;
  const std::vector<Expr> symbols = sym::symbols_in(e);
  std::vector<Value> values;
  for (Expr s : symbols) {
    const std::optional<Value>& hint = states_.at(s).hint;
    if (!hint) return std::nullopt; // may come later, so it is not remembered
    values.push_back(*hint);
  }
  return hints_[e] = sym::evaluate(arena_, e, symbols, values.data());
}

std::optional<bool> ShapeEnv::known(Expr condition, bool size_oblivious) {
  const Lock lock(mutex_);
  if (const auto answer = facts_.decide(condition)) return answer;
  return size_oblivious ? oblivious_.decide(condition) : std::nullopt;
}

bool ShapeEnv::holds_by_hint(Expr condition) {
  const std::optional<Value> hint = hint_of(condition);
  if (!hint) throw_data_dependent(condition);
  return hint->integer != 0;
}

void ShapeEnv::throw_data_dependent(Expr asked) {
  const Expr simple = shown(asked);
  std::string names;
  for (Expr s : sym::symbols_in(simple))
    if (!states_.at(s).hint) names += (names.empty() ? "" : ", ") + arena_.info(s).name;
  const bool truth = asked->sort == Sort::Bool;
  throw DataDependentError(
      str(
          truth ? "Could not guard on data-dependent expression "
                : "Could not extract specialized integer from data-dependent expression ",
          text(simple), " (unhinted: ", text(simple), "). (Size-like symbols: ",
          [&] {
            std::string sizes;
            for (Expr s : sym::symbols_in(simple))
              if (states_.at(s).size_like)
                sizes += (sizes.empty() ? "" : ", ") + arena_.info(s).name;
            return sizes.empty() ? std::string("none") : sizes;
          }(),
          ")\n\nThe value of ", names,
          " comes out of the program's data. State what is true of it with torch._check(), or let "
          "the program not depend on it."),
      handle_of(simple));
}

void ShapeEnv::learn(Expr condition) {
  facts_.assume(condition);
  oblivious_.assume(condition);
  show_new_replacements();
}

void ShapeEnv::add_guard(Expr condition, std::string where, bool size_oblivious) {
  const Lock lock(mutex_);
  if (!frozen && guarded_.insert(condition).second) {
    guards_.push_back({condition, std::move(where), size_oblivious});
    if (on_guard) on_guard(guards_.back());
  }
  learn(condition);
}

void ShapeEnv::record(Expr condition, const char* where, bool size_oblivious) {
  add_guard(shown(condition), frozen ? "" : origin ? origin(where) : where, size_oblivious);
}

bool ShapeEnv::evaluate(Expr condition, const char* where, bool size_oblivious) {
  const Lock lock(mutex_);
  if (const auto answer = known(condition, size_oblivious)) return *answer;
  const bool holds = holds_by_hint(condition);
  record(holds ? condition : arena_.logical_not(condition), where, size_oblivious);
  return holds;
}

bool ShapeEnv::evaluate_or(Expr condition, bool otherwise, const char* where) {
  const Lock lock(mutex_);
  if (const auto answer = known(condition)) return *answer;
  return hint_of(condition) ? evaluate(condition, where) : otherwise;
}

Value ShapeEnv::specialise(Expr number, const char* where) {
  const Lock lock(mutex_);
  const Expr simple = facts_.simplify(number);
  if (sym::is_constant(simple)) return {simple->integer};
  const std::optional<Value> hint = hint_of(number);
  if (!hint) throw_data_dependent(number);
  const Expr value = number->sort == Sort::Int     ? arena_.integer(hint->integer)
                     : number->sort == Sort::Float ? arena_.real(hint->real)
                                                   : arena_.truth(hint->integer != 0);
  record(arena_.eq(number, value), where, false);
  return *hint;
}

bool ShapeEnv::defer(Expr condition, std::string message) {
  const Lock lock(mutex_);
  if (const auto answer = known(condition)) return *answer;
  const Expr simple = shown(condition);
  Expr newest = nullptr;
  for (Expr s : sym::symbols_in(simple))
    if (!states_.at(s).backed) newest = s;
  auto& list = asserts_[newest];
  const bool old = std::any_of(list.begin(), list.end(),
                               [&](const RuntimeAssert& a) { return a.condition == simple; });
  if (!old && !frozen) list.push_back({simple, std::move(message)});
  learn(simple);
  return true;
}

bool ShapeEnv::expect_true(Expr condition, const char* where) {
  const Lock lock(mutex_);
  if (const auto answer = known(condition)) return *answer;
  if (hint_of(condition)) {
    const bool only_backed = is_backed(condition);
    if (!holds_by_hint(condition) || (only_backed && !defer_instead_of_guard))
      return evaluate(condition, where);
  }
  return defer(condition, origin ? origin(where) : where);
}

sym::Program ShapeEnv::guard_program(ArrayRef<Expr> inputs) const {
  std::vector<Expr> conditions;
  for (const Guard& g : guards_) conditions.push_back(g.condition);
  return {arena_, inputs, conditions};
}

// ---- nodes
ShapeNode* shape_node(int64_t raw) { return dynamic_cast<ShapeNode*>(symbolic_node(raw)); }

int64_t ShapeNode::apply(SymOp op, int64_t left, int64_t right) {
  const Lock lock(env_->mutex());
  const Expr a = env_->shown(env_->expr_of(left));
  const Expr b = op < SymOp::Not ? env_->shown(env_->expr_of(right)) : nullptr;
  return env_->raw_of(env_->apply(op, a, b));
}
int64_t ShapeNode::guard_int(const char* file, int) {
  return env_->specialise(expr_, file).integer;
}
double ShapeNode::guard_float(const char* file, int) { return env_->specialise(expr_, file).real; }
bool ShapeNode::guard_bool(const char* file, int) { return env_->evaluate(expr_, file); }
bool ShapeNode::guard_or(bool otherwise, const char* file, int) {
  return env_->evaluate_or(expr_, otherwise, file);
}
std::optional<bool> ShapeNode::known() { return env_->known(expr_); }
bool ShapeNode::expect_true(const char* file, int) { return env_->expect_true(expr_, file); }
std::optional<int64_t> ShapeNode::hint() {
  const std::optional<Value> value = env_->hint_of(expr_);
  return value ? std::optional<int64_t>(value->integer) : std::nullopt;
}
std::string ShapeNode::str() {
  const Lock lock(env_->mutex());
  return sym::print(env_->arena(), env_->shown(expr_));
}
std::shared_ptr<void> ShapeNode::owner() {
  return env_->owner ? env_->owner() : std::shared_ptr<void>(env_->shared_from_this());
}

} // namespace c10::shapes
