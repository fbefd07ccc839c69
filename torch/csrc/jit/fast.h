// The short form of instructions that work on numbers: operands lie in the instruction, results go
// to their register without a stack, and a comparison whose result only a jump reads is one step
// with it. check() makes the steps; an instruction without a short form runs as it is.
#pragma once
#include <torch/csrc/jit/program.h>

namespace torch::jit {

inline void put_bits(IValue& out, IValue::Tag tag, int64_t bits) {
  if (C10_UNLIKELY(bool(out.ref))) out.ref.reset();
  out.tag = tag;
  out.bits.i = bits;
}
inline void put(IValue& out, int64_t v) { put_bits(out, IValue::Tag::Int, v); }
inline void put(IValue& out, bool v) { put_bits(out, IValue::Tag::Bool, v); }
inline void put(IValue& out, double v) {
  put_bits(out, IValue::Tag::Double, 0);
  out.bits.d[0] = v;
}

inline bool holds_number(const IValue& v) {
  return v.tag == IValue::Tag::Int || v.tag == IValue::Tag::Double;
}
inline double real_number(const IValue& v) {
  return v.tag == IValue::Tag::Double ? v.bits.d[0] : static_cast<double>(v.bits.i);
}

// Arithmetic of two integers; false where the builtin must decide (it raises, or wraps at the
// smallest integer).
inline bool integer_step(Fast op, int64_t a, int64_t b, IValue& out) {
  switch (op) {
  case Fast::Add:
    put(out, int64_t(uint64_t(a) + uint64_t(b)));
    return true;
  case Fast::Sub:
    put(out, int64_t(uint64_t(a) - uint64_t(b)));
    return true;
  case Fast::Mul:
    put(out, int64_t(uint64_t(a) * uint64_t(b)));
    return true;
  case Fast::FloorDiv:
  case Fast::Mod: {
    if (b == 0 || b == -1) return false;
    const int64_t r = a % b;
    const bool below = r != 0 && ((r < 0) != (b < 0));
    put(out, op == Fast::Mod ? r + (below ? b : 0) : a / b - below);
    return true;
  }
  case Fast::Div:
    if (b == 0) return false;
    put(out, double(a) / double(b));
    return true;
  default:
    return false;
  }
}

inline bool real_step(Fast op, double a, double b, IValue& out) {
  switch (op) {
  case Fast::Add:
    put(out, a + b);
    return true;
  case Fast::Sub:
    put(out, a - b);
    return true;
  case Fast::Mul:
    put(out, a * b);
    return true;
  case Fast::Div:
    if (b == 0) return false;
    put(out, a / b);
    return true;
  default:
    return false;
  }
}

template <class T> inline bool compare(Fast op, T a, T b) {
  switch (op) {
  case Fast::Eq:
    return a == b;
  case Fast::Ne:
    return a != b;
  case Fast::Lt:
    return a < b;
  case Fast::Gt:
    return a > b;
  case Fast::Le:
    return a <= b;
  default:
    return a >= b;
  }
}

inline bool is_comparison(Fast op) { return op >= Fast::Eq && op <= Fast::Ge; }

// list[i] of numbers; false for other lists, and for an index outside, which the builtin reports.
inline bool list_step(const IValue& list, const IValue& index, IValue& out) {
  if (index.tag != IValue::Tag::Int) return false;
  const auto at = [&](size_t n, int64_t* i) {
    *i = index.bits.i < 0 ? index.bits.i + int64_t(n) : index.bits.i;
    return *i >= 0 && *i < int64_t(n);
  };
  int64_t i = 0;
  if (list.tag == IValue::Tag::IntList) {
    const std::vector<int64_t>& items = list.toIntList();
    if (!at(items.size(), &i)) return false;
    put(out, items[size_t(i)]);
    return true;
  }
  if (list.tag == IValue::Tag::DoubleList) {
    using Items = IValue::Holder<std::vector<double>>;
    const std::vector<double>& items = static_cast<const Items*>(list.ref.get())->value;
    if (!at(items.size(), &i)) return false;
    put(out, items[size_t(i)]);
    return true;
  }
  return false;
}

} // namespace torch::jit
