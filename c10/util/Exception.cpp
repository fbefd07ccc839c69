// Out-of-line parts of Exception.h: vtables in one place, and the formatting of numbers.
#include <c10/util/Exception.h>
#include <c10/util/ExceptionUser.h>

#include <atomic>
#include <cmath>
#include <cstdio>

namespace c10 {

Error::Error(std::string message) : message_(std::move(message)) {}
Error::~Error() = default;
IndexError::~IndexError() = default;
ValueError::~ValueError() = default;
TypeError::~TypeError() = default;
AttributeError::~AttributeError() = default;
NotImplementedError::~NotImplementedError() = default;
OutOfMemoryError::~OutOfMemoryError() = default;
LinAlgError::~LinAlgError() = default;
OverflowError::~OverflowError() = default;
BufferError::~BufferError() = default;
SyntaxError::~SyntaxError() = default;
InternalError::~InternalError() = default;

void append(std::string& out, std::string_view text) { out.append(text); }
void append(std::string& out, const char* text) { out.append(text); }
void append(std::string& out, char c) { out.push_back(c); }
void append(std::string& out, bool value) { out.append(value ? "True" : "False"); }
void append(std::string& out, int value) { out.append(std::to_string(value)); }
void append(std::string& out, unsigned value) { out.append(std::to_string(value)); }
void append(std::string& out, long value) { out.append(std::to_string(value)); }
void append(std::string& out, unsigned long value) { out.append(std::to_string(value)); }
void append(std::string& out, long long value) { out.append(std::to_string(value)); }
void append(std::string& out, unsigned long long value) { out.append(std::to_string(value)); }

// The shortest of the printf forms that reads back as the same double, as Python's repr does.
void append(std::string& out, double value) {
  char buffer[40];
  if (std::isfinite(value)) {
    for (int precision = 6; precision <= 17; ++precision) {
      std::snprintf(buffer, sizeof buffer, "%.*g", precision, value);
      double back = 0;
      std::sscanf(buffer, "%lf", &back);
      if (back == value) break;
    }
  } else {
    std::snprintf(buffer, sizeof buffer, "%g", value);
  }
  out.append(buffer);
}

namespace {
void print_warning(const char* category, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", category, message.c_str());
}
std::atomic<WarningHandler> warning_handler{&print_warning};
} // namespace

void set_warning_handler(WarningHandler handler) {
  warning_handler.store(handler ? handler : &print_warning);
}

namespace {
thread_local at::WarningHandler* thread_handler = nullptr;
std::atomic<bool> warn_always{false};

// The process's handler, for a thread that asks for one and has none of its own.
struct DefaultHandler final : at::WarningHandler {
  void process(const Warning& warning) override {
    warning_handler.load()(warning.category(), warning.msg());
  }
};
} // namespace

namespace WarningUtils {
void set_warning_handler(at::WarningHandler* handler) noexcept { thread_handler = handler; }
at::WarningHandler* get_warning_handler() noexcept {
  static DefaultHandler handler;
  return thread_handler ? thread_handler : &handler;
}
void set_warnAlways(bool always) noexcept { warn_always.store(always); }
bool get_warnAlways() noexcept { return warn_always.load(); }
} // namespace WarningUtils

namespace detail {
C10_API void throw_undefined_handle() {
  throw Error("called on an undefined handle (made by the default constructor, moved from, or "
              "reset): it refers to no object");
}
void emit_warning(const char* category, std::string message) {
  WarningUtils::get_warning_handler()->process(Warning(category, std::move(message)));
}
} // namespace detail

} // namespace c10

at::WarningHandler::~WarningHandler() = default;
