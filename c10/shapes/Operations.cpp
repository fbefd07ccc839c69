// The operations of symbolic numbers on expressions, with Python's rules for mixed operands.
#include <c10/shapes/ShapeEnv.h>

namespace c10::shapes {

using sym::Arena;
using sym::Kind;
using sym::Sort;

namespace {

// A truth value among numbers counts as 0 or 1.
Expr number(Arena& arena, Expr e) {
  return e->sort == Sort::Bool ? arena.where(e, arena.integer(1), arena.integer(0)) : e;
}

Kind bits_kind(SymOp op) {
  switch (op) {
  case SymOp::LeftShift:
    return Kind::LeftShift;
  case SymOp::RightShift:
    return Kind::RightShift;
  case SymOp::BitAnd:
    return Kind::BitAnd;
  case SymOp::BitOr:
    return Kind::BitOr;
  default:
    return Kind::BitXor;
  }
}

Expr unary(Arena& arena, SymOp op, Expr a) {
  switch (op) {
  case SymOp::Not:
    return arena.logical_not(a);
  case SymOp::Neg:
    return arena.neg(number(arena, a));
  case SymOp::Abs:
    return arena.max(a, arena.neg(a));
  case SymOp::ToFloat:
    return arena.to_float(number(arena, a));
  case SymOp::Trunc:
    return arena.to_int(Kind::Trunc, number(arena, a));
  case SymOp::Floor:
    return arena.to_int(Kind::Floor, a);
  case SymOp::Ceil:
    return arena.to_int(Kind::Ceil, a);
  case SymOp::Round:
    return arena.to_int(Kind::Round, a);
  default: // IsInteger
    if (a->sort == Sort::Int) return arena.truth(true);
    return arena.eq(arena.to_float(arena.to_int(Kind::Trunc, a)), a);
  }
}

Expr relation(Arena& arena, SymOp op, Expr a, Expr b) {
  if (a->sort != b->sort) {
    a = number(arena, a);
    b = number(arena, b);
  }
  switch (op) {
  case SymOp::Eq:
    return arena.eq(a, b);
  case SymOp::Ne:
    return arena.ne(a, b);
  case SymOp::Lt:
    return arena.lt(a, b);
  case SymOp::Le:
    return arena.le(a, b);
  case SymOp::Gt:
    return arena.gt(a, b);
  default:
    return arena.ge(a, b);
  }
}

Expr arithmetic(Arena& arena, SymOp op, Expr a, Expr b) {
  switch (op) {
  case SymOp::Add:
    return arena.add(a, b);
  case SymOp::Sub:
    return arena.sub(a, b);
  case SymOp::Mul:
    return arena.mul(a, b);
  case SymOp::TrueDiv:
    return arena.truediv(a, b);
  case SymOp::FloorDiv:
    return arena.floordiv(a, b);
  case SymOp::Mod:
    return arena.mod(a, b);
  case SymOp::Pow:
    return arena.pow(a, b);
  case SymOp::Min:
    return arena.min(a, b);
  case SymOp::Max:
    return arena.max(a, b);
  default:
    return arena.bits(bits_kind(op), a, b);
  }
}

} // namespace

Expr ShapeEnv::apply(SymOp op, Expr a, Expr b) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (op >= SymOp::Not) return unary(arena_, op, a);
  if (op >= SymOp::Eq && op <= SymOp::Ge) return relation(arena_, op, a, b);
  const auto truth = [&](Expr e) {
    return e->sort == Sort::Bool ? e : arena_.ne(e, arena_.integer(0));
  };
  if (op == SymOp::And) return arena_.logical_and(truth(a), truth(b));
  if (op == SymOp::Or) return arena_.logical_or(truth(a), truth(b));
  a = number(arena_, a);
  b = number(arena_, b);
  // What ranges decide about the smaller one is not written out: a size of 2 or more is Max(s0, 1).
  if ((op == SymOp::Min || op == SymOp::Max) && a->sort == Sort::Int && b->sort == Sort::Int) {
    if (const auto first_smaller = facts_.decide(arena_.le(a, b)))
      return *first_smaller == (op == SymOp::Min) ? a : b;
  }
  return arithmetic(arena_, op, a, b);
}

} // namespace c10::shapes
