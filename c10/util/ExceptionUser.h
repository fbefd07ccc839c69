// The rest of Exception.h for code outside of this library: handlers of warnings as objects, the
// older names of checks, and checks without a message that name their condition.
#pragma once
#include <c10/util/Exception.h>

namespace c10 {

class C10_API Warning {
 public:
  // `category` is a literal: "UserWarning", "DeprecationWarning", ...
  Warning(const char* category, std::string message)
      : category_(category), message_(std::move(message)) {}
  const char* category() const { return category_; }
  const std::string& msg() const { return message_; }
  bool verbatim() const { return false; }

 private:
  const char* category_;
  std::string message_;
};
} // namespace c10

namespace at {

// Receives the warnings of a thread.
class C10_API WarningHandler {
 public:
  virtual ~WarningHandler();
  virtual void process(const c10::Warning& warning) = 0;
};

} // namespace at

namespace c10::WarningUtils {
// Of this thread, in place of the process's; null goes back to that one. Not owned.
C10_API void set_warning_handler(at::WarningHandler* handler) noexcept;
C10_API at::WarningHandler* get_warning_handler() noexcept;
// Whether warnings that come once come always.
C10_API void set_warnAlways(bool always) noexcept;
C10_API bool get_warnAlways() noexcept;
class WarnAlways {
 public:
  explicit WarnAlways(bool always = true) : before_(get_warnAlways()) { set_warnAlways(always); }
  ~WarnAlways() { set_warnAlways(before_); }
  WarnAlways(const WarnAlways&) = delete;
  WarnAlways& operator=(const WarnAlways&) = delete;

 private:
  bool before_;
};
} // namespace c10::WarningUtils

namespace c10::detail {
inline std::string check_message(const char* condition) {
  return str("Expected ", condition, " to be true, but got false.");
}
template <class T, class... Ts>
std::string check_message(const char*, const T& first, const Ts&... parts) {
  return str(first, parts...);
}
} // namespace c10::detail

#undef CRESSET_THROW_IF_NOT
// A statement of its own, because there are programs without a semicolon behind it.
#define CRESSET_THROW_IF_NOT(Type, cond, ...)                                                      \
  if (C10_UNLIKELY(!(cond))) {                                                                     \
    [&]() __attribute__((cold, noinline, noreturn)) {                                              \
      throw ::c10::Type(::c10::detail::check_message(#cond, ##__VA_ARGS__));                       \
    }                                                                                              \
    ();                                                                                            \
  }
#undef TORCH_WARN_ONCE
#define TORCH_WARN_ONCE(...)                                                                       \
  do {                                                                                             \
    static bool warned_once = false;                                                               \
    if (!warned_once || ::c10::WarningUtils::get_warnAlways()) {                                   \
      warned_once = true;                                                                          \
      TORCH_WARN(__VA_ARGS__);                                                                     \
    }                                                                                              \
  } while (false)

#ifdef CRESSET_DEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) static_cast<void>(0)
#endif
#define TORCH_CHECK_WITH(Type, cond, ...) CRESSET_THROW_IF_NOT(Type, cond, ##__VA_ARGS__)
#define C10_THROW_ERROR(Type, message) throw ::c10::Type(message)
#define AT_ERROR(...) TORCH_CHECK(false, ##__VA_ARGS__)
#define AT_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define AT_INDEX_ERROR(...) TORCH_CHECK_INDEX(false, ##__VA_ARGS__)
#define AT_WARN(...) TORCH_WARN(__VA_ARGS__)
