// Integer expressions as polynomials while they are computed with: a constant and terms sorted by
// the age of their monomials, without zero coefficients. Arena turns the result into its one node.
#pragma once
#include <utility>

#include <c10/sym/Expr.h>
#include <c10/util/SmallVector.h>

namespace c10::sym {

struct Term {
  Expr monomial; // an atom or a Product
  int64_t coef;
};

class C10_API Polynomial {
 public:
  Polynomial() = default;
  explicit Polynomial(int64_t constant) : constant_(constant) {}
  explicit Polynomial(Expr e);

  int64_t constant() const { return constant_; }
  ArrayRef<Term> terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }

  // this += factor * other
  void add(const Polynomial& other, int64_t factor = 1);
  void add_constant(int64_t value);
  void add_term(Expr monomial, int64_t coef);
  void scale(int64_t factor);
  static Polynomial multiply(Arena& arena, const Polynomial& a, const Polynomial& b);

  // The greatest common divisor of the coefficients, and of the constant if asked; 0 if all are 0.
  int64_t content(bool with_constant) const;
  // All coefficients and the constant divided by a common divisor.
  Polynomial divided(int64_t divisor) const;

  Expr expr(Arena& arena) const;

 private:
  int64_t constant_ = 0;
  SmallVector<Term, 4> terms_;
};

// The atoms of a monomial, repeated by power.
inline ArrayRef<Expr> atoms_of(const Expr& monomial) {
  return monomial->kind == Kind::Product ? monomial->operands() : ArrayRef<Expr>(&monomial, 1);
}

C10_API int64_t checked_add(int64_t a, int64_t b);
C10_API int64_t checked_mul(int64_t a, int64_t b);
C10_API int64_t gcd(int64_t a, int64_t b);

} // namespace c10::sym
