// Truth values and floats that may be symbolic, and what shape functions ask about sizes. The same
// functions take plain values, so that a shape function written once over the type of its integers
// serves plain sizes, at the cost of plain arithmetic, and symbolic ones.
#pragma once
#include <c10/core/SymInt.h>
#include <c10/util/Exception.h>

namespace c10 {

// A decision that depends on data: no value is known for the symbols it asks about.
class C10_API DataDependentError : public Error {
 public:
  DataDependentError(std::string message, int64_t condition)
      : Error(std::move(message)), condition_(condition) {}
  ~DataDependentError() override;
  // The handle of what was asked.
  int64_t condition() const { return condition_; }

 private:
  int64_t condition_;
};

C10_API int64_t apply_plain(SymOp op, int64_t a, int64_t b);

class SymBool {
 public:
  constexpr SymBool() = default;
  constexpr SymBool(bool value) : data_(value) {}
  static constexpr SymBool from_raw(int64_t raw) {
    SymBool out;
    out.data_ = raw;
    return out;
  }
  constexpr bool is_symbolic() const { return data_ < SymInt::kSymbolicBound; }
  constexpr int64_t raw() const { return data_; }
  bool guard_bool(const char* file = "", int line = 0) const {
    return is_symbolic() ? symbolic_node(data_)->guard_bool(file, line) : data_ != 0;
  }
  std::optional<bool> known() const {
    return is_symbolic() ? symbolic_node(data_)->known() : std::optional<bool>(data_ != 0);
  }
  friend SymBool operator&(SymBool a, SymBool b) { return apply(SymOp::And, a.data_, b.data_); }
  friend SymBool operator|(SymBool a, SymBool b) { return apply(SymOp::Or, a.data_, b.data_); }
  SymBool operator!() const { return apply(SymOp::Not, data_, 0); }

  C10_API static SymBool apply(SymOp op, int64_t a, int64_t b);

 private:
  int64_t data_ = 0;
};

class SymFloat {
 public:
  SymFloat(double value) : value_(value) {}
  static SymFloat from_raw(int64_t raw) {
    SymFloat out(0.0);
    out.raw_ = raw;
    return out;
  }
  bool is_symbolic() const { return raw_ != 0; }
  int64_t raw() const { return raw_; }
  double guard_float(const char* file = "", int line = 0) const {
    return is_symbolic() ? symbolic_node(raw_)->guard_float(file, line) : value_;
  }

 private:
  double value_;
  int64_t raw_ = 0;
};

// ---- relations as values: nothing is guarded
inline SymBool sym_eq(SymInt a, SymInt b) { return SymBool::apply(SymOp::Eq, a.raw(), b.raw()); }
inline SymBool sym_ne(SymInt a, SymInt b) { return SymBool::apply(SymOp::Ne, a.raw(), b.raw()); }
inline SymBool sym_lt(SymInt a, SymInt b) { return SymBool::apply(SymOp::Lt, a.raw(), b.raw()); }
inline SymBool sym_le(SymInt a, SymInt b) { return SymBool::apply(SymOp::Le, a.raw(), b.raw()); }
inline SymBool sym_gt(SymInt a, SymInt b) { return sym_lt(b, a); }
inline SymBool sym_ge(SymInt a, SymInt b) { return sym_le(b, a); }
constexpr bool sym_eq(int64_t a, int64_t b) { return a == b; }
constexpr bool sym_ne(int64_t a, int64_t b) { return a != b; }
constexpr bool sym_lt(int64_t a, int64_t b) { return a < b; }
constexpr bool sym_le(int64_t a, int64_t b) { return a <= b; }
constexpr bool sym_gt(int64_t a, int64_t b) { return a > b; }
constexpr bool sym_ge(int64_t a, int64_t b) { return a >= b; }
inline SymInt sym_min(SymInt a, SymInt b) { return SymInt::apply(SymOp::Min, a, b); }
inline SymInt sym_max(SymInt a, SymInt b) { return SymInt::apply(SymOp::Max, a, b); }
constexpr int64_t sym_min(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t sym_max(int64_t a, int64_t b) { return a < b ? b : a; }

// ---- decisions
// Known for all values, without a guard.
constexpr bool statically_known_true(bool b) { return b; }
inline bool statically_known_true(SymBool b) { return b.known() == true; }
// Guarded where a value is known; `false` (`true`) where the answer depends on data.
constexpr bool guard_or_false(bool b) { return b; }
constexpr bool guard_or_true(bool b) { return b; }
inline bool guard_or_false(SymBool b) {
  return b.is_symbolic() ? symbolic_node(b.raw())->guard_or(false, "", 0) : b.raw() != 0;
}
inline bool guard_or_true(SymBool b) {
  return b.is_symbolic() ? symbolic_node(b.raw())->guard_or(true, "", 0) : b.raw() != 0;
}
// What must hold for the program to be right: guarded, or checked at run time.
constexpr bool expect_true(bool b) { return b; }
inline bool expect_true(SymBool b) {
  return b.is_symbolic() ? symbolic_node(b.raw())->expect_true("", 0) : b.raw() != 0;
}

} // namespace c10
