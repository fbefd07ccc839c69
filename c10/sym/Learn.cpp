// Facts that are added: relations become bounds of linear forms or solved symbols.
#include <c10/sym/Facts.h>

#include <algorithm>

namespace c10::sym {

void Facts::changed() {
  ++version_;
  ranges_.clear();
  simplified_.clear();
}

bool Facts::bound(Expr e, Interval interval) {
  const LinearForm d = linear_form(arena_, simplify(e));
  if (d.form == nullptr) return interval.contains(d.constant);
  bool possible = true;
  if (interval.high != INT64_MAX)
    possible = assume_form(Kind::Le, {d.form, d.factor, checked_add(d.constant, -interval.high)});
  if (possible && interval.low != INT64_MIN)
    possible = assume_form(
        Kind::Le, {d.form, checked_mul(d.factor, -1), checked_add(interval.low, -d.constant)});
  return possible;
}

void Facts::replace(Expr symbol, Expr by) {
  // What was known of the symbol is known of the expression now.
  const Interval old = range(symbol);
  replacement_[symbol] = by;
  replaced_.emplace_back(symbol, by);
  changed();
  const auto known = known_.find(symbol);
  const std::vector<int64_t> excluded =
      known == known_.end() ? std::vector<int64_t>() : known->second.excluded;
  bound(by, old);
  for (int64_t value : excluded) assume(arena_.ne(by, arena_.integer(value)));
  // Relations that mention the symbol are stated anew without it.
  const std::vector<Expr> forms = sums_;
  for (Expr form : forms) {
    const Expr now = simplify(form);
    if (now != form) bound(now, known_[form].interval);
  }
}

bool Facts::assume(Expr condition) {
  const Expr c = simplify(condition);
  switch (c->kind) {
  case Kind::Truth:
    return c->integer != 0;
  case Kind::Eq:
  case Kind::Ne:
  case Kind::Lt:
  case Kind::Le:
    return assume_relation(c);
  case Kind::And: {
    bool possible = true;
    for (Expr part : c->operands()) possible = assume(part) && possible;
    return possible;
  }
  case Kind::Not:
    held_[c->args[0]] = false;
    [[fallthrough]];
  default:
    held_[c] = true;
    changed();
    return true;
  }
}

bool Facts::assume_relation(Expr relation) {
  const Expr a = relation->args[0], b = relation->args[1];
  if (a->sort != Sort::Int || b->sort != Sort::Int) {
    held_[relation] = true;
    held_[arena_.logical_not(relation)] = false;
    changed();
    return true;
  }
  const Expr difference = arena_.sub(a, b);
  const LinearForm d = linear_form(arena_, difference);
  if (const auto answer = decide_difference(relation->kind, d)) return *answer;
  if (relation->kind == Kind::Eq && solve(difference)) return true;
  return assume_form(relation->kind, d);
}

// The interval of L that keeps factor * L + constant on the right side of 0.
bool Facts::assume_form(Kind kind, const LinearForm& d) {
  const bool is_new = known_.find(d.form) == known_.end();
  Known& known = known_[d.form];
  if (is_new && d.form->kind == Kind::Sum) sums_.push_back(d.form);
  if (kind == Kind::Ne) {
    if (floor_remainder(d.constant, d.factor) != 0) return true;
    const int64_t root = checked_mul(floor_divide(d.constant, d.factor), -1);
    const Interval r = range(d.form);
    // An excluded end narrows the range; inside it is remembered.
    if (r.low == root && r.high != root)
      known.interval.low = root + 1;
    else if (r.high == root && r.low != root)
      known.interval.high = root - 1;
    else
      known.excluded.push_back(root);
    changed();
    return true;
  }
  const int64_t limit = checked_mul(kind == Kind::Lt ? checked_add(d.constant, 1) : d.constant, -1);
  Interval allowed;
  // factor * L <= limit
  if (kind == Kind::Eq) {
    if (floor_remainder(limit, d.factor) != 0) return false;
    allowed = Interval::point(floor_divide(limit, d.factor));
  } else if (d.factor > 0) {
    allowed.high = floor_divide(limit, d.factor);
  } else {
    allowed.low = checked_mul(floor_divide(limit, checked_mul(d.factor, -1)), -1);
  }
  const Interval narrowed = range(d.form).intersect(allowed);
  if (narrowed.is_empty()) return false;
  known.interval = known.interval.intersect(allowed);
  changed();
  return true;
}

// difference = 0 as symbol = expression, where a symbol occurs in one term alone with factor 1 or
// -1.
bool Facts::solve(Expr difference) {
  const LinearForm d = linear_form(arena_, difference);
  if (floor_remainder(d.constant, d.factor) != 0) return false;
  const Expr equation = arena_.add(d.form, arena_.integer(floor_divide(d.constant, d.factor)));
  const Polynomial p(equation);
  Expr chosen = nullptr;
  int64_t factor = 1;
  bool chosen_preferred = false;
  for (const Term& t : p.terms()) {
    if (t.monomial->kind != Kind::Symbol || (t.coef != 1 && t.coef != -1)) continue;
    const Expr others = arena_.sub(equation, arena_.scale(t.monomial, t.coef));
    const std::vector<Expr> inside = symbols_in(others);
    if (std::find(inside.begin(), inside.end(), t.monomial) != inside.end()) continue;
    const bool preferred =
        std::find(preferred_.begin(), preferred_.end(), t.monomial) != preferred_.end();
    // The newest, so that programs are described by the symbols they met first.
    if (chosen == nullptr || preferred > chosen_preferred ||
        (preferred == chosen_preferred && t.monomial->id > chosen->id)) {
      chosen = t.monomial;
      factor = t.coef;
      chosen_preferred = preferred;
    }
  }
  if (chosen == nullptr) return false;
  // factor * chosen + others = 0
  const Expr others = arena_.sub(equation, arena_.scale(chosen, factor));
  const Expr value = arena_.scale(others, -factor);
  // A bound of the symbol that the expression cannot keep makes the equation impossible.
  if (range(chosen).intersect(range(value)).is_empty()) return false;
  replace(chosen, value);
  return true;
}

} // namespace c10::sym
