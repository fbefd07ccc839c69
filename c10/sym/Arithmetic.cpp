// The operations that make numbers. Integers go through polynomials; floats are folded where both
// operands are constants and otherwise kept as written, because rounding forbids to reorder them.
#include <c10/sym/Polynomial.h>

#include <algorithm>
#include <cmath>

#include <c10/util/Exception.h>

namespace c10::sym {

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return checked_mul(a, -1);
  const int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

namespace {

bool is_float(Expr a) { return a->sort == Sort::Float; }
bool older(Expr a, Expr b) { return a->id < b->id; }

// What is left of a monomial after `by` is divided out, or false.
bool divide_monomial(Expr monomial, Expr by, SmallVector<Expr, 8>& rest) {
  const ArrayRef<Expr> atoms = atoms_of(monomial), divisor = atoms_of(by);
  if (!std::includes(atoms.begin(), atoms.end(), divisor.begin(), divisor.end(), older))
    return false;
  rest.resize(atoms.size());
  auto* end = std::set_difference(atoms.begin(), atoms.end(), divisor.begin(), divisor.end(),
                                  rest.begin(), older);
  rest.resize(size_t(end - rest.begin()));
  return true;
}

// The product of atoms, 1 for none.
Polynomial monomial_of(Arena& arena, ArrayRef<Expr> atoms) {
  Expr out = arena.integer(1);
  for (Expr a : atoms) out = arena.mul(out, a);
  return Polynomial(out);
}

// numerator = quotient * divisor + rest, the quotient as large as whole terms allow.
struct Division {
  Polynomial quotient;
  Polynomial rest;
};

Division divide_by_constant(const Polynomial& numerator, int64_t divisor) {
  Division out;
  out.quotient.add_constant(floor_divide(numerator.constant(), divisor));
  out.rest.add_constant(floor_remainder(numerator.constant(), divisor));
  for (const Term& t : numerator.terms()) {
    if (t.coef % divisor == 0)
      out.quotient.add_term(t.monomial, t.coef / divisor);
    else
      out.rest.add_term(t.monomial, t.coef);
  }
  return out;
}

Division divide_by_monomial(Arena& arena, const Polynomial& numerator, const Term& divisor) {
  Division out;
  out.rest.add_constant(numerator.constant());
  SmallVector<Expr, 8> atoms;
  for (const Term& t : numerator.terms()) {
    if (t.coef % divisor.coef == 0 && divide_monomial(t.monomial, divisor.monomial, atoms))
      out.quotient.add(monomial_of(arena, atoms), t.coef / divisor.coef);
    else
      out.rest.add_term(t.monomial, t.coef);
  }
  return out;
}

// A multiple of the divisor by a constant factor is taken out.
Division divide_by_sum(const Polynomial& numerator, const Polynomial& divisor) {
  Division out;
  out.rest = numerator;
  const Term& lead = divisor.terms()[0];
  for (const Term& t : numerator.terms()) {
    if (t.monomial != lead.monomial || t.coef % lead.coef != 0) continue;
    Polynomial rest = numerator;
    rest.add(divisor, -(t.coef / lead.coef));
    if (rest.terms().size() < numerator.terms().size() && rest.is_constant()) {
      out.quotient.add_constant(t.coef / lead.coef);
      out.rest = rest;
    }
    break;
  }
  return out;
}

Division divide(Arena& arena, const Polynomial& numerator, const Polynomial& divisor) {
  if (divisor.is_constant()) return divide_by_constant(numerator, divisor.constant());
  if (divisor.terms().size() == 1 && divisor.constant() == 0)
    return divide_by_monomial(arena, numerator, divisor.terms()[0]);
  return divide_by_sum(numerator, divisor);
}

// Common factors of all terms of both, as numbers and atoms: a/b and floor(a/b) do not change.
struct Cancelled {
  Polynomial numerator, divisor;
  Polynomial factor; // what was divided out
};

Cancelled cancel(Arena& arena, const Polynomial& numerator, const Polynomial& divisor) {
  Cancelled out{numerator, divisor, Polynomial(1)};
  const int64_t common = gcd(numerator.content(true), divisor.content(true));
  if (common > 1) {
    out.numerator = numerator.divided(common);
    out.divisor = divisor.divided(common);
    out.factor = Polynomial(common);
  }
  if (numerator.constant() != 0 || divisor.constant() != 0 || divisor.is_constant() ||
      numerator.is_constant())
    return out;
  SmallVector<Expr, 8> shared(atoms_of(numerator.terms()[0].monomial));
  for (const Polynomial* p : {&numerator, &divisor}) {
    for (const Term& t : p->terms()) {
      const ArrayRef<Expr> atoms = atoms_of(t.monomial);
      SmallVector<Expr, 8> both(std::min(shared.size(), atoms.size()), nullptr);
      auto* end = std::set_intersection(shared.begin(), shared.end(), atoms.begin(), atoms.end(),
                                        both.begin(), older);
      both.resize(size_t(end - both.begin()));
      shared = both;
    }
  }
  if (shared.empty()) return out;
  const Polynomial factor = monomial_of(arena, shared);
  const Term divisor_term = factor.terms()[0];
  out.numerator = divide_by_monomial(arena, out.numerator, divisor_term).quotient;
  out.divisor = divide_by_monomial(arena, out.divisor, divisor_term).quotient;
  out.factor = Polynomial::multiply(arena, out.factor, factor);
  return out;
}

void check_divisor(Expr b) {
  if (is_integer(b, 0)) throw ValueError("symbolic expression: division by zero");
}

double fold(Kind kind, double a, double b) {
  switch (kind) {
  case Kind::FloatAdd:
    return a + b;
  case Kind::FloatMul:
    return a * b;
  case Kind::FloatDiv:
    return a / b;
  case Kind::FloatPower:
    return std::pow(a, b);
  case Kind::FloatMin:
    return b < a ? b : a;
  case Kind::FloatMax:
    return a < b ? b : a;
  default: {
    const double r = std::fmod(a, b);
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
  }
  }
}

} // namespace

Expr Arena::float_binary(Kind kind, Expr a, Expr b) {
  a = to_float(a);
  b = to_float(b);
  if (is_constant(a) && is_constant(b)) return real(fold(kind, a->real, b->real));
  const bool commutes = kind == Kind::FloatAdd || kind == Kind::FloatMul;
  if (commutes && b->id < a->id) std::swap(a, b);
  const Expr args[] = {a, b};
  return intern(kind, Sort::Float, 0, args);
}

Expr Arena::add(Expr a, Expr b) {
  if (is_float(a) || is_float(b)) return float_binary(Kind::FloatAdd, a, b);
  if (is_integer(a, 0)) return b;
  if (is_integer(b, 0)) return a;
  Polynomial sum(a);
  sum.add(Polynomial(b));
  return sum.expr(*this);
}

Expr Arena::scale(Expr a, int64_t factor) {
  if (factor == 1) return a;
  if (is_float(a)) return float_binary(Kind::FloatMul, a, integer(factor));
  Polynomial scaled(a);
  scaled.scale(factor);
  return scaled.expr(*this);
}

Expr Arena::neg(Expr a) { return scale(a, -1); }
Expr Arena::sub(Expr a, Expr b) { return add(a, neg(b)); }

Expr Arena::mul(Expr a, Expr b) {
  if (is_float(a) || is_float(b)) return float_binary(Kind::FloatMul, a, b);
  if (a->kind == Kind::Integer) return scale(b, a->integer);
  if (b->kind == Kind::Integer) return scale(a, b->integer);
  return Polynomial::multiply(*this, Polynomial(a), Polynomial(b)).expr(*this);
}

Expr Arena::floordiv(Expr a, Expr b) {
  check_divisor(b);
  if (is_float(a) || is_float(b)) {
    const Expr quotient = float_binary(Kind::FloatDiv, a, b);
    return to_float(to_int(Kind::Floor, quotient));
  }
  const Cancelled parts = cancel(*this, Polynomial(a), Polynomial(b));
  if (parts.divisor.is_constant() && parts.divisor.constant() == -1)
    return neg(parts.numerator.expr(*this));
  Division division = divide(*this, parts.numerator, parts.divisor);
  const Expr whole = division.quotient.expr(*this);
  // Taking terms out may leave a common factor in the rest.
  const Cancelled left = cancel(*this, division.rest, parts.divisor);
  const Expr rest = left.numerator.expr(*this), divisor = left.divisor.expr(*this);
  if (is_integer(rest, 0)) return whole;
  if (rest->kind == Kind::Integer && divisor->kind == Kind::Integer)
    return add(whole, integer(floor_divide(rest->integer, divisor->integer)));
  // (x // c) // d is x // (c * d) for positive constants.
  if (rest->kind == Kind::FloorDiv && divisor->kind == Kind::Integer && divisor->integer > 0 &&
      rest->args[1]->kind == Kind::Integer && rest->args[1]->integer > 0)
    return add(whole, floordiv(rest->args[0], mul(rest->args[1], divisor)));
  const Expr args[] = {rest, divisor};
  return add(whole, intern(Kind::FloorDiv, Sort::Int, 0, args));
}

Expr Arena::mod(Expr a, Expr b) {
  check_divisor(b);
  if (is_float(a) || is_float(b)) return float_binary(Kind::FloatMod, a, b);
  const Cancelled parts = cancel(*this, Polynomial(a), Polynomial(b));
  const Expr factor = parts.factor.expr(*this), divisor = parts.divisor.expr(*this);
  if (is_integer(divisor, 1) || is_integer(divisor, -1)) return integer(0);
  const Expr rest = divide(*this, parts.numerator, parts.divisor).rest.expr(*this);
  if (is_integer(rest, 0)) return rest;
  if (rest->kind == Kind::Integer && divisor->kind == Kind::Integer)
    return mul(factor, integer(floor_remainder(rest->integer, divisor->integer)));
  const Expr args[] = {rest, divisor};
  return mul(factor, intern(Kind::Mod, Sort::Int, 0, args));
}

Expr Arena::truediv(Expr a, Expr b) {
  check_divisor(b);
  if (b->kind == Kind::Real && b->real == 0)
    throw ValueError("symbolic expression: division by zero");
  return float_binary(Kind::FloatDiv, a, b);
}

Expr Arena::pow(Expr a, Expr b) {
  if (is_float(a) || is_float(b)) return float_binary(Kind::FloatPower, a, b);
  if (b->kind == Kind::Integer) {
    if (b->integer < 0) return float_binary(Kind::FloatPower, a, b);
    if (b->integer <= kWrittenPower || a->kind == Kind::Integer) {
      Expr out = integer(1);
      // Powers of 0, 1 and -1 of any height end soon; others overflow long before 64 steps.
      int64_t times = b->integer;
      if (a->kind == Kind::Integer && a->integer >= -1 && a->integer <= 1 && times > 2)
        times = 2 - (times & 1);
      for (int64_t i = 0; i < times; ++i) out = mul(out, a);
      return out;
    }
  }
  const Expr args[] = {a, b};
  return intern(Kind::Power, Sort::Int, 0, args);
}

Expr Arena::min(Expr a, Expr b) { return extremum(Kind::Min, a, b); }
Expr Arena::max(Expr a, Expr b) { return extremum(Kind::Max, a, b); }

Expr Arena::extremum(Kind kind, Expr a, Expr b) {
  if (is_float(a) || is_float(b))
    return float_binary(kind == Kind::Min ? Kind::FloatMin : Kind::FloatMax, a, b);
  SmallVector<Expr, 8> kept;
  const auto offer = [&](Expr e) {
    for (Expr& other : kept) {
      const Expr difference = sub(e, other);
      if (difference->kind != Kind::Integer) continue;
      if ((difference->integer < 0) == (kind == Kind::Min)) other = e;
      return;
    }
    kept.push_back(e);
  };
  for (Expr e : {a, b}) {
    if (e->kind != kind) {
      offer(e);
      continue;
    }
    for (Expr inner : e->operands()) offer(inner);
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), older);
  return intern(kind, Sort::Int, 0, kept);
}

Expr Arena::bits(Kind kind, Expr a, Expr b) {
  TORCH_CHECK(a->sort != Sort::Float && b->sort != Sort::Float,
              "symbolic expression: bit operations take integers");
  if (a->kind == Kind::Integer && b->kind == Kind::Integer) {
    const int64_t x = a->integer, y = b->integer;
    switch (kind) {
    case Kind::BitAnd:
      return integer(x & y);
    case Kind::BitOr:
      return integer(x | y);
    case Kind::BitXor:
      return integer(x ^ y);
    case Kind::LeftShift:
      if (y >= 0 && y < 63) return integer(checked_mul(x, int64_t(1) << y));
      break;
    default:
      if (y >= 0) return integer(x >> std::min<int64_t>(y, 63));
    }
    TORCH_CHECK_VALUE(y >= 0, "symbolic expression: negative shift count");
  }
  const Expr args[] = {a, b};
  return intern(kind, Sort::Int, 0, args);
}

Expr Arena::to_float(Expr a) {
  if (is_float(a)) return a;
  if (a->kind == Kind::Integer) return real(double(a->integer));
  return intern(Kind::ToFloat, Sort::Float, 0, {&a, 1});
}

Expr Arena::to_int(Kind kind, Expr a) {
  if (!is_float(a)) return a;
  if (a->kind == Kind::ToFloat) return a->args[0];
  if (a->kind == Kind::Real) {
    const double x = a->real;
    const double whole = kind == Kind::Trunc   ? std::trunc(x)
                         : kind == Kind::Floor ? std::floor(x)
                         : kind == Kind::Ceil  ? std::ceil(x)
                                               : std::nearbyint(x);
    if (!(std::fabs(whole) < 9.2e18))
      throw OverflowError("symbolic expression: a float exceeds the range of integers");
    return integer(int64_t(whole));
  }
  return intern(kind, Sort::Int, 0, {&a, 1});
}

Expr Arena::function(std::string_view name, Expr a) {
  a = to_float(a);
  size_t number = 0;
  while (number < functions_.size() && functions_[number] != name) ++number;
  if (number == functions_.size()) functions_.emplace_back(name);
  return intern(Kind::Function, Sort::Float, int64_t(number), {&a, 1});
}

} // namespace c10::sym
