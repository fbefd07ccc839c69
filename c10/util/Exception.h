// Errors a user can cause are C++ exceptions of these classes; the Python layer maps each class to
// the exception type PyTorch raises. Messages are built without streams: compile time and code size
// of every check site matter more than formatting comfort, so TORCH_CHECK calls one cold function.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include <c10/macros/Macros.h>

namespace c10 {

// The base of all errors raised on purpose: RuntimeError in Python.
class C10_API Error : public std::exception {
 public:
  explicit Error(std::string message);
  ~Error() override;
  const char* what() const noexcept override { return message_.c_str(); }
  CRESSET_USER_MEMBERS(Error) const std::string& message() const noexcept { return message_; }

 private:
  std::string message_;
};

#define CRESSET_DECLARE_ERROR(Name)                                                                \
  class C10_API Name : public Error {                                                              \
   public:                                                                                         \
    explicit Name(std::string message) : Error(std::move(message)) {}                              \
    ~Name() override;                                                                              \
  }
CRESSET_DECLARE_ERROR(IndexError);
CRESSET_DECLARE_ERROR(ValueError);
CRESSET_DECLARE_ERROR(TypeError);
CRESSET_DECLARE_ERROR(AttributeError);
CRESSET_DECLARE_ERROR(NotImplementedError);
CRESSET_DECLARE_ERROR(OutOfMemoryError);
CRESSET_DECLARE_ERROR(LinAlgError);
CRESSET_DECLARE_ERROR(OverflowError);
CRESSET_DECLARE_ERROR(BufferError);
CRESSET_DECLARE_ERROR(SyntaxError);
// An invariant of ours broke: a bug in this library, still an exception and never an abort.
CRESSET_DECLARE_ERROR(InternalError);
#undef CRESSET_DECLARE_ERROR

// ---- message building ---------------------------------------------------------------------------
C10_API void append(std::string& out, std::string_view text);
C10_API void append(std::string& out, const char* text);
C10_API void append(std::string& out, char c);
C10_API void append(std::string& out, bool value);
C10_API void append(std::string& out, int value);
C10_API void append(std::string& out, unsigned value);
C10_API void append(std::string& out, long value);
C10_API void append(std::string& out, unsigned long value);
C10_API void append(std::string& out, long long value);
C10_API void append(std::string& out, unsigned long long value);
C10_API void append(std::string& out, double value);
inline void append(std::string& out, const std::string& text) {
  append(out, std::string_view(text));
}
CRESSET_USER_MEMBERS(append)
// Concatenates anything with an `append(std::string&, const T&)` overload found by its namespace.
template <class... Ts> std::string str(const Ts&... parts) {
  std::string out;
  (CRESSET_APPEND_PART(out, parts), ...);
  return out;
}

namespace detail {
C10_API void emit_warning(const char* category, std::string message);
}
// `category` is "UserWarning", "DeprecationWarning", ...; the handler is installed by the Python
// layer and defaults to standard error.
using WarningHandler = void (*)(const char* category, const std::string& message);
C10_API void set_warning_handler(WarningHandler handler);

} // namespace c10

#define CRESSET_THROW_IF_NOT(Type, cond, ...)                                                      \
  do {                                                                                             \
    if (C10_UNLIKELY(!(cond))) {                                                                   \
      [&]() __attribute__((cold, noinline, noreturn)) {                                            \
        throw ::c10::Type(::c10::str(__VA_ARGS__));                                                \
      }                                                                                            \
      ();                                                                                          \
    }                                                                                              \
  } while (false)

#define TORCH_CHECK(cond, ...) CRESSET_THROW_IF_NOT(Error, cond, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) CRESSET_THROW_IF_NOT(IndexError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) CRESSET_THROW_IF_NOT(ValueError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) CRESSET_THROW_IF_NOT(TypeError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...)                                                     \
  CRESSET_THROW_IF_NOT(NotImplementedError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_LINALG(cond, ...) CRESSET_THROW_IF_NOT(LinAlgError, cond, ##__VA_ARGS__)
#define CRESSET_STRINGIZE_IMPL(x) #x
#define CRESSET_STRINGIZE(x) CRESSET_STRINGIZE_IMPL(x)
#define TORCH_INTERNAL_ASSERT(cond, ...)                                                           \
  CRESSET_THROW_IF_NOT(InternalError, cond,                                                        \
                       "internal error at " __FILE__                                               \
                       ":" CRESSET_STRINGIZE(__LINE__) ", please report it: " #cond " ",           \
                       ##__VA_ARGS__)
#define TORCH_WARN(...) ::c10::detail::emit_warning("UserWarning", ::c10::str(__VA_ARGS__))
#define TORCH_WARN_DEPRECATION(...)                                                                \
  ::c10::detail::emit_warning("DeprecationWarning", ::c10::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                                                                       \
  do {                                                                                             \
    static bool warned_once = false;                                                               \
    if (!warned_once) {                                                                            \
      warned_once = true;                                                                          \
      TORCH_WARN(__VA_ARGS__);                                                                     \
    }                                                                                              \
  } while (false)

#ifndef CRESSET_KERNEL_TU
#include <c10/util/ExceptionUser.h>
#endif
