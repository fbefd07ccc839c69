// See Polynomial.h. Sums are merged, not sorted again: both sides are in order already.
#include <c10/sym/Polynomial.h>

#include <algorithm>

#include <c10/util/Exception.h>

namespace c10::sym {

namespace {
[[noreturn]] C10_COLD void throw_overflow() {
  throw OverflowError("symbolic expression: a coefficient exceeds 64 bits");
}
bool older(Expr a, Expr b) { return a->id < b->id; }
} // namespace

int64_t checked_add(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) throw_overflow();
  return out;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) throw_overflow();
  return out;
}

int64_t gcd(int64_t a, int64_t b) {
  // In unsigned numbers, where the smallest integer has an absolute value too.
  uint64_t x = a < 0 ? 0 - uint64_t(a) : uint64_t(a);
  uint64_t y = b < 0 ? 0 - uint64_t(b) : uint64_t(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  if (x > uint64_t(INT64_MAX)) throw_overflow();
  return int64_t(x);
}

Polynomial::Polynomial(Expr e) {
  switch (e->kind) {
  case Kind::Integer:
    constant_ = e->integer;
    break;
  case Kind::Sum:
    constant_ = e->integer;
    for (uint32_t i = 0; i < e->count; ++i) terms_.push_back({e->args[i], e->coefs[i]});
    break;
  default:
    terms_.push_back({e, 1});
  }
}

void Polynomial::add_constant(int64_t value) { constant_ = checked_add(constant_, value); }

void Polynomial::add_term(Expr monomial, int64_t coef) {
  if (coef == 0) return;
  Term* spot = std::lower_bound(terms_.begin(), terms_.end(), monomial,
                                [](const Term& t, Expr m) { return older(t.monomial, m); });
  if (spot == terms_.end() || spot->monomial != monomial) {
    terms_.insert(spot, Term{monomial, coef});
    return;
  }
  spot->coef = checked_add(spot->coef, coef);
  if (spot->coef == 0) terms_.erase(spot);
}

void Polynomial::add(const Polynomial& other, int64_t factor) {
  add_constant(checked_mul(other.constant_, factor));
  for (const Term& t : other.terms_) add_term(t.monomial, checked_mul(t.coef, factor));
}

void Polynomial::scale(int64_t factor) {
  if (factor == 0) terms_.clear();
  constant_ = checked_mul(constant_, factor);
  for (Term& t : terms_) t.coef = checked_mul(t.coef, factor);
}

Polynomial Polynomial::multiply(Arena& arena, const Polynomial& a, const Polynomial& b) {
  Polynomial out(checked_mul(a.constant_, b.constant_));
  for (const Term& t : a.terms_) out.add_term(t.monomial, checked_mul(t.coef, b.constant_));
  for (const Term& t : b.terms_) out.add_term(t.monomial, checked_mul(t.coef, a.constant_));
  SmallVector<Expr, 8> atoms;
  for (const Term& s : a.terms_) {
    for (const Term& t : b.terms_) {
      const ArrayRef<Expr> left = atoms_of(s.monomial), right = atoms_of(t.monomial);
      atoms.resize(left.size() + right.size());
      std::merge(left.begin(), left.end(), right.begin(), right.end(), atoms.begin(), older);
      out.add_term(arena.product(atoms), checked_mul(s.coef, t.coef));
    }
  }
  return out;
}

int64_t Polynomial::content(bool with_constant) const {
  int64_t common = with_constant ? gcd(constant_, 0) : 0;
  for (const Term& t : terms_) common = gcd(common, t.coef);
  return common;
}

Polynomial Polynomial::divided(int64_t divisor) const {
  Polynomial out(constant_ / divisor);
  for (const Term& t : terms_) out.terms_.push_back({t.monomial, t.coef / divisor});
  return out;
}

Expr Polynomial::expr(Arena& arena) const {
  if (terms_.empty()) return arena.integer(constant_);
  if (constant_ == 0 && terms_.size() == 1 && terms_[0].coef == 1) return terms_[0].monomial;
  SmallVector<Expr, 8> args;
  SmallVector<int64_t, 8> coefs;
  for (const Term& t : terms_) {
    args.push_back(t.monomial);
    coefs.push_back(t.coef);
  }
  return arena.intern(Kind::Sum, Sort::Int, constant_, args, coefs);
}

} // namespace c10::sym
