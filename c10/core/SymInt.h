// An integer that may be symbolic. It is trivially copyable and as large as an int64_t, so
// operators take it in registers at no cost.
//
// Note [Symbolic integers are handles]
// A concrete value is stored as itself. Values below kSymbolicBound are handles of symbolic nodes
// in a process-wide table; the node lives as long as the shape environment that made it (which
// releases its nodes in one go), not as long as the copies of the handle. A handle whose
// environment is gone is detected by its generation and raises.
#pragma once
#include <cstdint>

#include <c10/util/ArrayRef.h>

namespace c10 {

// What the tracing layer implements: the value behind a symbolic integer.
class C10_API SymNodeImpl {
 public:
  virtual ~SymNodeImpl();
  // The concrete value, recorded as a guard by the environment.
  virtual int64_t guard_int(const char* file, int line) = 0;
  virtual int64_t binary(const char* op, int64_t self_raw, int64_t other_raw) = 0; // a raw handle
  virtual bool compare(const char* op, int64_t self_raw, int64_t other_raw) = 0;   // guarded
  virtual std::string str() = 0;
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
  std::string str() const;

  friend SymInt operator+(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ + b.data_) : binary("add", a, b);
  }
  friend SymInt operator-(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ - b.data_) : binary("sub", a, b);
  }
  friend SymInt operator*(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ * b.data_) : binary("mul", a, b);
  }
  friend SymInt operator/(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ / b.data_) : binary("floordiv", a, b);
  }
  friend SymInt operator%(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.data_ % b.data_) : binary("mod", a, b);
  }
  friend bool operator==(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ == b.data_ : compare("eq", a, b);
  }
  friend bool operator!=(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ != b.data_ : compare("ne", a, b);
  }
  friend bool operator<(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ < b.data_ : compare("lt", a, b);
  }
  friend bool operator<=(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ <= b.data_ : compare("le", a, b);
  }
  friend bool operator>(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ > b.data_ : compare("gt", a, b);
  }
  friend bool operator>=(SymInt a, SymInt b) {
    return plain(a, b) ? a.data_ >= b.data_ : compare("ge", a, b);
  }

 private:
  static constexpr bool plain(SymInt a, SymInt b) { return !a.is_symbolic() && !b.is_symbolic(); }
  C10_API static SymInt binary(const char* op, SymInt a, SymInt b);
  C10_API static bool compare(const char* op, SymInt a, SymInt b);
  C10_API int64_t guard_slow(const char* file, int line) const;
  [[noreturn]] C10_API static void throw_too_negative();
  int64_t data_ = 0;
};
static_assert(sizeof(SymInt) == 8 && std::is_trivially_copyable_v<SymInt>);

using SymIntArrayRef = ArrayRef<SymInt>;
using OptionalSymIntArrayRef = OptionalArrayRef<SymInt>;

// Registers a node and returns its handle; `release_symbolic_nodes` ends an environment.
C10_API int64_t make_symbolic(uint32_t environment, SymNodeImpl* node);
C10_API uint32_t new_symbolic_environment();
C10_API void release_symbolic_nodes(uint32_t environment);
C10_API SymNodeImpl* symbolic_node(int64_t raw);

// A plain list seen as a symbolic one costs nothing: the bits are the same.
inline SymIntArrayRef as_symint_array(IntArrayRef list) {
  return {reinterpret_cast<const SymInt*>(list.data()), list.size()};
}
[[noreturn]] C10_API void throw_symbolic_list();
// The other way needs every value to be concrete; a symbolic one raises naming the operator's
// limit.
inline IntArrayRef as_int_array(SymIntArrayRef list) {
  for (SymInt s : list)
    if (C10_UNLIKELY(s.is_symbolic())) throw_symbolic_list();
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
