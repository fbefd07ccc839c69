// The short form of instructions that work on numbers, lists, dictionaries and slots: operands lie
// in the instruction, results go to their register without a stack, and a comparison whose result
// only a jump reads is one step with it. check() makes the steps; an instruction without a short
// form runs as it is.
#pragma once
#include <torch/csrc/jit/lists.h>
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

// The place of list[i]; false where the index is no integer or lies outside.
inline bool place_in(size_t n, const IValue& index, size_t& place) {
  if (index.tag != IValue::Tag::Int) return false;
  const int64_t i = index.bits.i < 0 ? index.bits.i + int64_t(n) : index.bits.i;
  place = static_cast<size_t>(i);
  return i >= 0 && i < int64_t(n);
}

// list[i]; false for lists of other kinds, and for an index outside, which the builtin reports.
inline bool item_step(const IValue& list, const IValue& index, IValue& out) {
  size_t i = 0;
  const auto take = [&](const auto& items) {
    if (!place_in(items.size(), index, i)) return false;
    using T = typename std::decay_t<decltype(items)>::value_type;
    if constexpr (std::is_arithmetic_v<T>)
      put(out, static_cast<T>(items[i]));
    else
      out = IValue(items[i]); // the copy is made before `out`, which may be the list, is dropped
    return true;
  };
  switch (list.tag) {
  case IValue::Tag::IntList:
    return take(vector_of<int64_t>(list));
  case IValue::Tag::DoubleList:
    return take(vector_of<double>(list));
  case IValue::Tag::BoolList:
    return take(vector_of<bool>(list));
  case IValue::Tag::TensorList:
    return take(vector_of<at::Tensor>(list));
  case IValue::Tag::List:
    return take(vector_of<IValue>(list));
  default:
    return false;
  }
}

// Gives f the vector of a list and a value as its item; false where the value is of another kind.
template <class F> bool with_item(const IValue& list, const IValue& value, F&& f) {
  using Tag = IValue::Tag;
  if (list.tag == Tag::IntList && value.tag == Tag::Int)
    return f(vector_of<int64_t>(list), value.bits.i);
  if (list.tag == Tag::DoubleList && value.tag == Tag::Double)
    return f(vector_of<double>(list), value.bits.d[0]);
  if (list.tag == Tag::BoolList && value.tag == Tag::Bool)
    return f(vector_of<bool>(list), value.bits.i != 0);
  if (list.tag == Tag::TensorList && value.tag == Tag::Tensor)
    return f(vector_of<at::Tensor>(list), value.toTensor());
  return list.tag == Tag::List && f(vector_of<IValue>(list), value);
}

inline bool append_step(const IValue& list, const IValue& value) {
  return with_item(list, value, [](auto& items, const auto& item) {
    items.push_back(item);
    return true;
  });
}

inline bool set_item_step(const IValue& list, const IValue& index, const IValue& value) {
  return with_item(list, value, [&](auto& items, const auto& item) {
    size_t i = 0;
    if (!place_in(items.size(), index, i)) return false;
    // What stood there goes when the list is whole again: its end may run anything.
    using T = typename std::decay_t<decltype(items)>::value_type;
    [[maybe_unused]] const T old = std::move(items[i]);
    items[i] = item;
    return true;
  });
}

} // namespace torch::jit
