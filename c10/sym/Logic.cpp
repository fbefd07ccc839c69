// The operations that make truth values, and the choice between two values.
#include <c10/sym/Expr.h>

#include <algorithm>

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

namespace c10::sym {

namespace {
template <class T> bool compare(Kind kind, T a, T b) {
  switch (kind) {
  case Kind::Eq:
    return a == b;
  case Kind::Ne:
    return a != b;
  case Kind::Lt:
    return a < b;
  default:
    return a <= b;
  }
}
} // namespace

Expr Arena::relation(Kind kind, Expr a, Expr b) {
  if (a->sort == Sort::Bool && b->sort == Sort::Bool) {
    TORCH_CHECK(kind == Kind::Eq || kind == Kind::Ne,
                "symbolic expression: truth values have no order");
    if (a == b) return truth(kind == Kind::Eq);
    if (is_constant(a)) std::swap(a, b);
    if (is_constant(b)) return (b->integer != 0) == (kind == Kind::Eq) ? a : logical_not(a);
  } else if (a->sort == Sort::Float || b->sort == Sort::Float) {
    a = to_float(a);
    b = to_float(b);
    if (is_constant(a) && is_constant(b)) return truth(compare(kind, a->real, b->real));
  } else {
    const Expr difference = sub(a, b);
    if (difference->kind == Kind::Integer)
      return truth(compare<int64_t>(kind, difference->integer, 0));
  }
  const Expr args[] = {a, b};
  return intern(kind, Sort::Bool, 0, args);
}

Expr Arena::logical_not(Expr a) {
  switch (a->kind) {
  case Kind::Truth:
    return truth(a->integer == 0);
  case Kind::Not:
    return a->args[0];
  case Kind::Eq:
    return relation(Kind::Ne, a->args[0], a->args[1]);
  case Kind::Ne:
    return relation(Kind::Eq, a->args[0], a->args[1]);
  case Kind::Lt:
  case Kind::Le:
    // Not a < b is b <= a, unless one of two floats is NaN.
    if (a->args[0]->sort == Sort::Float) break;
    return relation(a->kind == Kind::Lt ? Kind::Le : Kind::Lt, a->args[1], a->args[0]);
  case Kind::And:
  case Kind::Or: {
    Expr out = logical_not(a->args[0]);
    const Kind other = a->kind == Kind::And ? Kind::Or : Kind::And;
    for (uint32_t i = 1; i < a->count; ++i) out = junction(other, out, logical_not(a->args[i]));
    return out;
  }
  default:
    break;
  }
  return intern(Kind::Not, Sort::Bool, 0, {&a, 1});
}

Expr Arena::junction(Kind kind, Expr a, Expr b) {
  const bool deciding = kind == Kind::Or; // the value that decides the whole
  SmallVector<Expr, 8> kept;
  for (Expr e : {a, b}) {
    TORCH_CHECK(e->sort == Sort::Bool, "symbolic expression: and, or and not take truth values");
    const ArrayRef<Expr> parts = e->kind == kind ? e->operands() : ArrayRef<Expr>(&e, 1);
    for (Expr part : parts) {
      if (is_truth(part, deciding)) return truth(deciding);
      if (is_truth(part, !deciding)) continue;
      if (std::find(kept.begin(), kept.end(), part) != kept.end()) continue;
      if (std::find(kept.begin(), kept.end(), logical_not(part)) != kept.end())
        return truth(deciding);
      kept.push_back(part);
    }
  }
  if (kept.empty()) return truth(!deciding);
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), [](Expr x, Expr y) { return x->id < y->id; });
  return intern(kind, Sort::Bool, 0, kept);
}

Expr Arena::where(Expr condition, Expr a, Expr b) {
  TORCH_CHECK(condition->sort == Sort::Bool, "symbolic expression: where takes a truth value");
  if (a->sort == Sort::Float || b->sort == Sort::Float) {
    a = to_float(a);
    b = to_float(b);
  }
  if (a == b || is_truth(condition, true)) return a;
  if (is_truth(condition, false)) return b;
  const Expr args[] = {condition, a, b};
  return intern(Kind::Where, a->sort, 0, args);
}

} // namespace c10::sym
