// An integer that may be symbolic. It is trivially copyable and as large as an int64_t, so
// operators take it in registers at no cost.
//
// Note [Symbolic integers are handles]
// A concrete value is stored as itself. Values below kSymbolicBound are handles of symbolic nodes
// in a process-wide table; the node lives as long as the shape environment that made it (which
// releases its nodes in one go), not as long as the copies of the handle. Tensors and Python
// objects that hold handles keep the environment alive (`SymNodeImpl::owner`). A handle whose
// environment is gone is detected and raises. Truth values and floats use the same table; their
// handles are in SymNumbers.h.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include <c10/util/ArrayRef.h>

namespace c10 {

// What can be computed with symbolic numbers. Those of one operand come last.
enum class SymOp : uint8_t {
  Add,
  Sub,
  Mul,
  TrueDiv,
  FloorDiv,
  Mod,
  Pow,
  Min,
  Max,
  LeftShift,
  RightShift,
  BitAnd,
  BitOr,
  BitXor,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Not,
  Neg,
  Abs,
  ToFloat,
  Trunc,
  Floor,
  Ceil,
  Round,
  IsInteger,
};

enum class SymSort : uint8_t { Int, Float, Bool };

// The value behind a symbolic number. Raw numbers are integers or handles; a truth value that needs
// no handle is 0 or 1.
class C10_API SymNodeImpl {
 public:
  virtual ~SymNodeImpl();
  virtual SymSort sort() const = 0;
  // Of two operands, or of `left` alone. The result is a number where it is the same for all
  // values of the symbols.
  virtual int64_t apply(SymOp op, int64_t left, int64_t right) = 0;

  // The concrete value, recorded as a guard by the environment. Without a known value of the
  // symbols: DataDependentError.
  virtual int64_t guard_int(const char* file, int line) = 0;
  virtual double guard_float(const char* file, int line) = 0;
  virtual bool guard_bool(const char* file, int line) = 0;
  // The truth value where it is known or can be guarded, else `otherwise`.
  virtual bool guard_or(bool otherwise, const char* file, int line) = 0;
  // True for every value of the symbols, or false for every one; nothing is guarded.
  virtual std::optional<bool> known() = 0;
  // States that a truth value holds: a guard, or a check at run time where no value is known.
  virtual bool expect_true(const char* file, int line) = 0;

  // The value in the traced run; nothing for data-dependent numbers.
  virtual std::optional<int64_t> hint() = 0;
  virtual std::string str() = 0;
  // Keeps the environment alive.
  virtual std::shared_ptr<void> owner() = 0;
  // A copy of `list` that lives as long as the environment.
  virtual const int64_t* keep(ArrayRef<int64_t> list) = 0;
};

class SymInt {
 public:
  static constexpr int64_t kSymbolicBound = -(int64_t(1) << 62);

  constexpr SymInt() = default;
  constexpr SymInt(int64_t value) : data_(value) {
    if (C10_UNLIKELY(value < kSymbolicBound)) throw_too_negative();
  }
  static constexpr SymInt from_raw(int64_t raw) {
    SymInt out;
    out.data_ = raw;
    return out;
  }
  constexpr bool is_symbolic() const { return data_ < kSymbolicBound; }
  constexpr int64_t raw() const { return data_; }
  int64_t guard_int(const char* file = "", int line = 0) const {
    return C10_LIKELY(!is_symbolic()) ? data_ : guard_slow(file, line);
  }
  int64_t expect_int() const { return guard_int(); }
  // The value in the traced run, without a guard.
  std::optional<int64_t> hint() const {
    return C10_LIKELY(!is_symbolic()) ? std::optional<int64_t>(data_) : hint_slow();
  }
  C10_API std::string str() const;

  friend SymInt operator+(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ + b.data_) : apply(SymOp::Add, a, b);
  }
  friend SymInt operator-(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ - b.data_) : apply(SymOp::Sub, a, b);
  }
  friend SymInt operator*(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ * b.data_) : apply(SymOp::Mul, a, b);
  }
  friend SymInt operator/(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ / b.data_) : apply(SymOp::FloorDiv, a, b);
  }
  friend SymInt operator%(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ % b.data_) : apply(SymOp::Mod, a, b);
  }
  SymInt operator-() const { return SymInt(0) - *this; }
  SymInt& operator+=(SymInt b) { return *this = *this + b; }
  SymInt& operator-=(SymInt b) { return *this = *this - b; }
  SymInt& operator*=(SymInt b) { return *this = *this * b; }
  SymInt& operator/=(SymInt b) { return *this = *this / b; }
  friend bool operator==(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ == b.data_ : compare(SymOp::Eq, a, b);
  }
  friend bool operator!=(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ != b.data_ : compare(SymOp::Ne, a, b);
  }
  friend bool operator<(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ < b.data_ : compare(SymOp::Lt, a, b);
  }
  friend bool operator<=(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ <= b.data_ : compare(SymOp::Le, a, b);
  }
  friend bool operator>(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ > b.data_ : compare(SymOp::Gt, a, b);
  }
  friend bool operator>=(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ >= b.data_ : compare(SymOp::Ge, a, b);
  }

  // The result of an operation that has no operator in C++, or of one with a symbolic operand.
  C10_API static SymInt apply(SymOp op, SymInt a, SymInt b);

 private:
  static constexpr bool plain(SymInt a, SymInt b) { return !a.is_symbolic() && !b.is_symbolic(); }
  C10_API static bool compare(SymOp op, SymInt a, SymInt b);
  C10_API int64_t guard_slow(const char* file, int line) const;
  C10_API std::optional<int64_t> hint_slow() const;
  [[noreturn]] C10_API static void throw_too_negative();
  int64_t data_ = 0;
};
static_assert(sizeof(SymInt) == 8 && std::is_trivially_copyable_v<SymInt>);

using SymIntArrayRef = ArrayRef<SymInt>;
using OptionalSymIntArrayRef = OptionalArrayRef<SymInt>;

// Registers a node and returns its handle; `release_symbolic_nodes` ends an environment.
C10_API int64_t make_symbolic(uint32_t environment, std::unique_ptr<SymNodeImpl> node);
C10_API uint32_t new_symbolic_environment();
C10_API void release_symbolic_nodes(uint32_t environment);
C10_API SymNodeImpl* symbolic_node(int64_t raw);

// A plain list seen as a symbolic one costs nothing: the bits are the same.
inline SymIntArrayRef as_symint_array(IntArrayRef list) {
  return {reinterpret_cast<const SymInt*>(list.data()), list.size()};
}
inline bool has_symbolic(SymIntArrayRef list) {
  for (SymInt s : list)
    if (C10_UNLIKELY(s.is_symbolic())) return true;
  return false;
}
C10_API IntArrayRef guarded_ints(SymIntArrayRef list);
// The other way needs every value to be concrete: symbolic ones are guarded to be what they are in
// the traced run. The plain numbers then live as long as the shape environment.
inline IntArrayRef as_int_array(SymIntArrayRef list) {
  if (C10_UNLIKELY(has_symbolic(list))) return guarded_ints(list);
  return {reinterpret_cast<const int64_t*>(list.data()), list.size()};
}
inline OptionalIntArrayRef as_int_array(const OptionalSymIntArrayRef& list) {
  return list ? OptionalIntArrayRef(as_int_array(*list)) : OptionalIntArrayRef();
}
inline int64_t as_int(SymInt s) { return s.guard_int(); }
inline std::optional<int64_t> as_int(const std::optional<SymInt>& s) {
  return s ? std::optional<int64_t>(s->guard_int()) : std::nullopt;
}
inline void append(std::string& out, SymInt s) { out += s.str(); }

} // namespace c10
