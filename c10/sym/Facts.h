// What is known about symbols: ranges, relations that hold, symbols that equal other expressions;
// and what follows for an expression.
//
// Note [Bounds by linear form]
// A relation between integers is a statement about their difference d = g * L + c, where L has no
// constant, coprime coefficients and a positive first one. Everything known about such an L is
// therefore one interval and a few excluded values, kept under L, which is one pointer. 's0 < 5',
// 's0 + s1 <= 8' and 'Mod(s0, 2) == 0' are all stored and looked up this way. An equality in which
// a symbol occurs alone is solved for it instead, and the symbol disappears from later expressions.
//
// Every answer is memoised until a fact is added (`version`).
#pragma once
#include <optional>
#include <unordered_map>

#include <c10/sym/Interval.h>
#include <c10/sym/Polynomial.h>

namespace c10::sym {

// d = factor * form + constant, factor != 0; form is null where d is constant.
struct LinearForm {
  Expr form = nullptr;
  int64_t factor = 1;
  int64_t constant = 0;
};
C10_API LinearForm linear_form(Arena& arena, Expr difference);

class C10_API Facts {
 public:
  explicit Facts(Arena& arena) : arena_(arena) {}

  // Everything known about an expression's value; of a Float or Bool nothing.
  Interval range(Expr e);
  // With solved symbols replaced, and what ranges decide decided.
  Expr simplify(Expr e);
  // Whether a truth value is known to hold or not to hold.
  std::optional<bool> decide(Expr condition);

  // Learns that a truth value holds. Returns false, and learns nothing, where the contrary is
  // known.
  bool assume(Expr condition);
  // Narrows the range of a symbol or another integer.
  bool bound(Expr e, Interval interval);
  // A symbol is solved: from now on it is `by`, in which it does not occur.
  void replace(Expr symbol, Expr by);
  const std::vector<std::pair<Expr, Expr>>& replacements() const { return replaced_; }

  // Symbols that equations are solved for first, because a value for them comes late.
  void prefer(Expr symbol) { preferred_.push_back(symbol); }

  uint64_t version() const { return version_; }

 private:
  struct Known {
    Interval interval;
    std::vector<int64_t> excluded;
  };

  Interval computed_range(Expr e);
  Interval range_of_sum(Expr e);
  Interval range_by_factor(Expr e);
  Interval by_one_axiom(Expr form);
  Expr simplified_operands(Expr e);
  Expr by_range(Expr e);
  Expr simple_division(Expr e);
  Expr simple_extremum(Expr e);
  Expr simple_sum(Expr e);
  std::optional<bool> decide_relation(Expr relation);
  std::optional<bool> decide_difference(Kind kind, const LinearForm& d);
  bool assume_relation(Expr relation);
  bool assume_form(Kind kind, const LinearForm& d);
  bool solve(Expr difference);
  void changed();

  Arena& arena_;
  std::unordered_map<Expr, Known> known_;
  std::vector<Expr> sums_; // the forms in known_ with more than one term
  std::vector<std::pair<Expr, Expr>> replaced_;
  std::unordered_map<Expr, Expr> replacement_;
  std::unordered_map<Expr, bool> held_; // conditions that are no relation of integers
  std::vector<Expr> preferred_;
  uint64_t version_ = 0;
  std::unordered_map<Expr, Interval> ranges_; // memo of this version
  std::unordered_map<Expr, Expr> simplified_; // likewise
};

} // namespace c10::sym
