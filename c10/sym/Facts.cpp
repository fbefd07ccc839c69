// See Facts.h. Ranges and decisions; learning is in Learn.cpp.
#include <c10/sym/Facts.h>

#include <algorithm>

#include <c10/util/Exception.h>

namespace c10::sym {

LinearForm linear_form(Arena& arena, Expr difference) {
  Polynomial p(difference);
  if (p.is_constant()) return {nullptr, 1, p.constant()};
  int64_t factor = p.content(false);
  if (p.terms()[0].coef < 0) factor = -factor;
  Polynomial form;
  for (const Term& t : p.terms()) form.add_term(t.monomial, t.coef / factor);
  return {form.expr(arena), factor, p.constant()};
}

namespace {

Interval applied(Interval form, const LinearForm& f) {
  return Interval::add(Interval::scale(form, f.factor), Interval::point(f.constant));
}

Interval range_of_product(Facts& facts, Expr e) {
  Interval out = Interval::point(1);
  for (uint32_t i = 0; i < e->count;) {
    uint32_t times = 1;
    while (i + times < e->count && e->args[i + times] == e->args[i]) ++times;
    out = Interval::mul(out, Interval::power(facts.range(e->args[i]), times));
    i += times;
  }
  return out;
}

} // namespace

Interval Facts::range(Expr e) {
  if (e->sort != Sort::Int) return {};
  if (e->kind == Kind::Integer) return Interval::point(e->integer);
  const auto memo = ranges_.find(e);
  if (memo != ranges_.end()) return memo->second;
  Interval out = computed_range(e);
  const auto known = known_.find(e);
  if (known != known_.end()) out = out.intersect(known->second.interval);
  ranges_[e] = out;
  return out;
}

Interval Facts::range_of_sum(Expr e) {
  Interval out = Interval::point(e->integer);
  for (uint32_t i = 0; i < e->count; ++i)
    out = Interval::add(out, Interval::scale(range(e->args[i]), e->coefs[i]));
  const LinearForm f = linear_form(arena_, e);
  if (f.form != e) out = out.intersect(applied(range(f.form), f));
  return out.intersect(range_by_factor(e));
}

// s0*s1 - s1 is s1 * (s0 - 1): a factor of all terms bounds the sum where the terms alone do not.
Interval Facts::range_by_factor(Expr e) {
  if (e->integer != 0 || e->count < 2) return {};
  for (Expr factor : atoms_of(e->args[0])) {
    const auto divides = [&](Expr m) {
      const auto atoms = atoms_of(m);
      return std::find(atoms.begin(), atoms.end(), factor) != atoms.end();
    };
    if (!std::all_of(e->args, e->args + e->count, divides)) continue;
    const Expr rest = arena_.floordiv(e, factor);
    if (rest->kind != Kind::Sum) continue;
    return Interval::mul(range(factor), range(rest));
  }
  return {};
}

Interval Facts::computed_range(Expr e) {
  const auto operand = [&](uint32_t i) { return range(e->args[i]); };
  switch (e->kind) {
  case Kind::Sum:
    return range_of_sum(e);
  case Kind::Product:
    return range_of_product(*this, e);
  case Kind::FloorDiv:
    return Interval::floordiv(operand(0), operand(1));
  case Kind::Mod:
    return Interval::mod(operand(0), operand(1));
  case Kind::Min:
  case Kind::Max: {
    Interval out = operand(0);
    for (uint32_t i = 1; i < e->count; ++i)
      out = e->kind == Kind::Min ? Interval::min(out, operand(i)) : Interval::max(out, operand(i));
    return out;
  }
  case Kind::Where:
    return operand(1).hull(operand(2));
  case Kind::Power:
    if (operand(0).low >= 1) return {1, INT64_MAX};
    if (operand(0).low >= 0) return {0, INT64_MAX};
    return {};
  case Kind::BitAnd:
    if (operand(0).low >= 0) return {0, operand(0).high};
    if (operand(1).low >= 0) return {0, operand(1).high};
    return {};
  case Kind::BitOr:
  case Kind::BitXor:
  case Kind::LeftShift:
  case Kind::RightShift:
    if (operand(0).low >= 0 && operand(1).low >= 0) return {0, INT64_MAX};
    return {};
  default:
    return {};
  }
}

// A bound by one known relation: L = A + (L - A), and both parts have ranges.
Interval Facts::by_one_axiom(Expr form) {
  Interval out = range(form);
  const Polynomial p(form);
  for (Expr axiom : sums_) {
    const Polynomial a(axiom);
    const bool meets = std::any_of(a.terms().begin(), a.terms().end(), [&](const Term& t) {
      return std::any_of(p.terms().begin(), p.terms().end(),
                         [&](const Term& u) { return u.monomial == t.monomial; });
    });
    if (!meets) continue;
    for (const int64_t sign : {1, -1}) {
      const Interval of_axiom = Interval::scale(known_[axiom].interval, sign);
      Polynomial rest = p;
      rest.add(a, -sign);
      out = out.intersect(Interval::add(of_axiom, range(rest.expr(arena_))));
    }
  }
  return out;
}

std::optional<bool> Facts::decide_difference(Kind kind, const LinearForm& d) {
  const auto from = [&](Interval x) -> std::optional<bool> {
    switch (kind) {
    case Kind::Lt:
      if (x.high < 0) return true;
      if (x.low >= 0) return false;
      return std::nullopt;
    case Kind::Le:
      if (x.high <= 0) return true;
      if (x.low > 0) return false;
      return std::nullopt;
    default:
      if (x == Interval::point(0)) return kind == Kind::Eq;
      if (!x.contains(0)) return kind == Kind::Ne;
      return std::nullopt;
    }
  };
  if (d.form == nullptr) return from(Interval::point(d.constant));
  if (auto answer = from(applied(range(d.form), d))) return answer;
  if (kind == Kind::Eq || kind == Kind::Ne) {
    if (floor_remainder(d.constant, d.factor) != 0) return kind == Kind::Ne;
    const int64_t root = checked_mul(floor_divide(d.constant, d.factor), -1);
    const auto known = known_.find(d.form);
    if (known != known_.end()) {
      const auto& excluded = known->second.excluded;
      if (std::find(excluded.begin(), excluded.end(), root) != excluded.end())
        return kind == Kind::Ne;
    }
  }
  return sums_.empty() ? std::nullopt : from(applied(by_one_axiom(d.form), d));
}

std::optional<bool> Facts::decide_relation(Expr relation) {
  const Expr a = relation->args[0], b = relation->args[1];
  if (a->sort != Sort::Int || b->sort != Sort::Int) {
    const auto held = held_.find(relation);
    return held == held_.end() ? std::nullopt : std::optional<bool>(held->second);
  }
  return decide_difference(relation->kind, linear_form(arena_, arena_.sub(a, b)));
}

std::optional<bool> Facts::decide(Expr condition) {
  const Expr c = simplify(condition);
  switch (c->kind) {
  case Kind::Truth:
    return c->integer != 0;
  case Kind::Eq:
  case Kind::Ne:
  case Kind::Lt:
  case Kind::Le:
    return decide_relation(c);
  case Kind::Not: {
    const auto inner = decide(c->args[0]);
    return inner ? std::optional<bool>(!*inner) : std::nullopt;
  }
  case Kind::And:
  case Kind::Or: {
    const bool deciding = c->kind == Kind::Or;
    bool all = true;
    for (Expr part : c->operands()) {
      const auto answer = decide(part);
      if (answer == deciding) return deciding;
      all = all && answer.has_value();
    }
    return all ? std::optional<bool>(!deciding) : std::nullopt;
  }
  default: {
    const auto held = held_.find(c);
    return held == held_.end() ? std::nullopt : std::optional<bool>(held->second);
  }
  }
}

Expr Facts::simplified_operands(Expr e) {
  if (e->kind == Kind::Symbol) {
    const auto found = replacement_.find(e);
    return found == replacement_.end() ? e : simplify(found->second);
  }
  SmallVector<Expr, 8> operands;
  bool same = true;
  for (Expr a : e->operands()) {
    operands.push_back(simplify(a));
    same = same && operands.back() == a;
  }
  return same ? e : arena_.rebuild(e, operands);
}

// Of 0 <= a < b the quotient is 0 and the remainder a.
Expr Facts::simple_division(Expr e) {
  const Expr a = e->args[0], b = e->args[1];
  if (range(a).low < 0 || range(b).low <= 0) return e;
  const LinearForm gap = linear_form(arena_, arena_.sub(a, b));
  if (decide_difference(Kind::Lt, gap) != true) return e;
  return e->kind == Kind::Mod ? a : arena_.integer(0);
}

// Leaves out operands that another one is known to beat; of two equal ones the first stays.
Expr Facts::simple_extremum(Expr e) {
  const bool smallest = e->kind == Kind::Min;
  Expr out = nullptr;
  for (uint32_t i = 0; i < e->count; ++i) {
    bool beaten = false;
    for (uint32_t j = 0; j < e->count && !beaten; ++j) {
      if (i == j) continue;
      const Expr better = e->args[smallest ? j : i], worse = e->args[smallest ? i : j];
      const LinearForm gap = linear_form(arena_, arena_.sub(better, worse));
      beaten = decide_difference(j < i ? Kind::Le : Kind::Lt, gap) == true;
    }
    if (beaten) continue;
    if (out == nullptr)
      out = e->args[i];
    else
      out = smallest ? arena_.min(out, e->args[i]) : arena_.max(out, e->args[i]);
  }
  return out == nullptr ? e : out;
}

// k * b * (a // b) is k * a where the division is known to leave nothing.
Expr Facts::simple_sum(Expr e) {
  for (uint32_t i = 0; i < e->count; ++i) {
    const Expr m = e->args[i];
    if (m->kind != Kind::FloorDiv || m->args[1]->kind != Kind::Integer) continue;
    const int64_t b = m->args[1]->integer;
    if (e->coefs[i] % b != 0) continue;
    if (range(arena_.mod(m->args[0], m->args[1])) != Interval::point(0)) continue;
    const Expr others = arena_.sub(e, arena_.scale(m, e->coefs[i]));
    return simplify(arena_.add(others, arena_.scale(m->args[0], e->coefs[i] / b)));
  }
  return e;
}

// What ranges decide about one node whose operands are simple already.
Expr Facts::by_range(Expr e) {
  if (e->sort == Sort::Bool) {
    const bool relation = e->kind >= Kind::Eq && e->kind <= Kind::Le;
    const auto answer = relation ? decide_relation(e) : std::nullopt;
    return answer ? arena_.truth(*answer) : e;
  }
  if (e->sort != Sort::Int) return e;
  const Interval r = range(e);
  if (r.is_point()) return arena_.integer(r.low);
  switch (e->kind) {
  case Kind::FloorDiv:
  case Kind::Mod:
    return simple_division(e);
  case Kind::Min:
  case Kind::Max:
    return simple_extremum(e);
  case Kind::Sum:
    return simple_sum(e);
  default:
    return e;
  }
}

Expr Facts::simplify(Expr e) {
  if (is_constant(e)) return e;
  const auto memo = simplified_.find(e);
  if (memo != simplified_.end()) return memo->second;
  Expr out = simplified_operands(e);
  if (!is_constant(out)) out = by_range(out);
  simplified_[e] = out;
  return out;
}

} // namespace c10::sym
