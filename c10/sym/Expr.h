// Symbolic expressions of integers, floats and truth values: what a size is while a program is
// traced with shapes that are not fixed.
//
// Note [Expressions in normal form]
// Expressions are interned in an arena and built only through it, so two expressions that are equal
// by the rules below are the same pointer, and comparing or hashing one costs nothing. An integer
// is kept as a sum of products: constant + sum of coefficient * product of atoms, sorted by the age
// of the atoms. Atoms are symbols and what no polynomial can say: floor division, remainder,
// minimum, maximum, powers, choices. Division and remainder take multiples of the divisor out of
// their argument and cancel common factors first. Everything here holds for all integers; what
// depends on known ranges is in Facts.h.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>

namespace c10::sym {

enum class Sort : uint8_t { Int, Float, Bool };

enum class Kind : uint8_t {
  // Leaves.
  Integer,
  Real,
  Truth,
  Symbol,
  // Integers in normal form.
  Sum,     // value + sum of coefs[i] * args[i]
  Product, // of atoms; a power is a repeated atom
  // Integer atoms.
  FloorDiv,
  Mod, // of the sign of the divisor, as Python's
  Min,
  Max,
  Power, // with an exponent that is not a constant
  LeftShift,
  RightShift,
  BitAnd,
  BitOr,
  BitXor,
  Trunc, // from Float to Int, towards zero
  Floor,
  Ceil,
  Round, // half to even
  // Floats.
  ToFloat,
  FloatAdd,
  FloatMul,
  FloatDiv,
  FloatPower,
  FloatMod,
  FloatMin,
  FloatMax,
  Function, // of one float, by its number in the arena
  // A value of any sort.
  Where,
  // Truth values. a > b is kept as b < a.
  Eq,
  Ne,
  Lt,
  Le,
  And,
  Or,
  Not,
};

struct Node {
  Kind kind;
  Sort sort;
  uint32_t id; // by age within the arena
  uint32_t count;
  union {
    int64_t integer; // Integer, Truth, number of a Symbol or Function, constant of a Sum
    double real;     // Real
  };
  const Node* const* args;
  const int64_t* coefs; // of a Sum

  ArrayRef<const Node*> operands() const { return {args, count}; }
};
using Expr = const Node*;

// The largest number of factors a power is written out to.
constexpr int64_t kWrittenPower = 16;

struct SymbolInfo {
  std::string name;
  Sort sort;
  Expr expr;
};

// Owns expressions and makes them. Not safe to use from several threads at once. Arithmetic that
// leaves 64 bits raises OverflowError, division by a zero constant ValueError.
class C10_API Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Expr integer(int64_t value);
  Expr real(double value);
  Expr truth(bool value);
  // A new symbol; names need not be unique, but printed text is clearer if they are.
  Expr symbol(std::string name, Sort sort = Sort::Int);
  const SymbolInfo& info(Expr symbol) const { return symbols_[size_t(symbol->integer)]; }
  size_t symbol_count() const { return symbols_.size(); }
  Expr symbol_at(size_t number) const { return symbols_[number].expr; }

  // Operands of different sorts meet as Python's numbers do: an Int beside a Float becomes one.
  Expr add(Expr a, Expr b);
  Expr sub(Expr a, Expr b);
  Expr mul(Expr a, Expr b);
  Expr neg(Expr a);
  Expr scale(Expr a, int64_t factor);
  Expr floordiv(Expr a, Expr b);
  Expr mod(Expr a, Expr b);
  Expr truediv(Expr a, Expr b); // a Float
  Expr pow(Expr a, Expr b);
  Expr min(Expr a, Expr b);
  Expr max(Expr a, Expr b);
  // Shifts and bit operations of integers.
  Expr bits(Kind kind, Expr a, Expr b);
  // Trunc, Floor, Ceil, Round of a Float; of an Int itself.
  Expr to_int(Kind kind, Expr a);
  Expr to_float(Expr a);
  // `name` as in Python's math module: sqrt, exp, log, sin, ...
  Expr function(std::string_view name, Expr a);
  const std::string& function_name(Expr call) const { return functions_[size_t(call->integer)]; }
  Expr where(Expr condition, Expr a, Expr b);

  Expr eq(Expr a, Expr b) { return relation(Kind::Eq, a, b); }
  Expr ne(Expr a, Expr b) { return relation(Kind::Ne, a, b); }
  Expr lt(Expr a, Expr b) { return relation(Kind::Lt, a, b); }
  Expr le(Expr a, Expr b) { return relation(Kind::Le, a, b); }
  Expr gt(Expr a, Expr b) { return relation(Kind::Lt, b, a); }
  Expr ge(Expr a, Expr b) { return relation(Kind::Le, b, a); }
  Expr relation(Kind kind, Expr a, Expr b);
  Expr logical_not(Expr a);
  Expr logical_and(Expr a, Expr b) { return junction(Kind::And, a, b); }
  Expr logical_or(Expr a, Expr b) { return junction(Kind::Or, a, b); }

  // The same operation on other operands, in normal form again.
  Expr rebuild(Expr like, ArrayRef<Expr> operands);

  size_t size() const { return count_; }

 private:
  friend class Polynomial;
  Expr intern(Kind kind, Sort sort, int64_t value, ArrayRef<Expr> args,
              ArrayRef<int64_t> coefs = {});
  Expr product(ArrayRef<Expr> sorted_atoms);
  Expr extremum(Kind kind, Expr a, Expr b);
  Expr junction(Kind kind, Expr a, Expr b);
  Expr float_binary(Kind kind, Expr a, Expr b);
  void* allocate(size_t bytes);
  void grow_table();

  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t left_ = 0; // bytes free in the last chunk
  std::vector<Node*> table_;
  size_t count_ = 0;
  std::deque<SymbolInfo> symbols_;
  std::vector<std::string> functions_;
};

inline bool is_constant(Expr e) {
  return e->kind == Kind::Integer || e->kind == Kind::Real || e->kind == Kind::Truth;
}
inline bool is_integer(Expr e, int64_t value) {
  return e->kind == Kind::Integer && e->integer == value;
}
inline bool is_truth(Expr e, bool value) {
  return e->kind == Kind::Truth && (e->integer != 0) == value;
}

// Python's division and remainder. The divisor is not 0.
C10_API int64_t floor_divide(int64_t a, int64_t b);
C10_API int64_t floor_remainder(int64_t a, int64_t b);

// The symbols in an expression, each once, oldest first.
C10_API std::vector<Expr> symbols_in(Expr e);

} // namespace c10::sym
