// Messages for whoever runs the program: LOG(WARNING) << "text". Those of INFO are not shown unless
// TORCH_CPP_LOG_LEVEL names that level; LOG(FATAL) throws c10::Error, it does not end the process.
#pragma once
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

#include <c10/util/Exception.h>

namespace c10 {

enum class LogLevel : int { INFO = 0, WARNING = 1, ERROR = 2, FATAL = 3 };

inline int shown_log_level() {
  static const int level = [] {
    const char* const text = std::getenv("TORCH_CPP_LOG_LEVEL");
    const std::string_view wanted = text == nullptr ? "" : text;
    if (wanted == "INFO" || wanted == "0") return 0;
    if (wanted == "ERROR" || wanted == "2") return 2;
    if (wanted == "FATAL" || wanted == "3") return 3;
    return 1;
  }();
  return level;
}

// One message, written at the end of the statement.
class LogMessage {
 public:
  LogMessage(LogLevel level, const char* file, int line) : level_(level) {
    text_ << "["
          << "IWEF"[static_cast<int>(level)] << " " << file << ":" << line << "] ";
  }
  ~LogMessage() noexcept(false) {
    if (static_cast<int>(level_) >= shown_log_level()) std::cerr << text_.str() + "\n";
    if (level_ == LogLevel::FATAL) throw Error(text_.str());
  }
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  std::ostream& stream() { return text_; }

 private:
  LogLevel level_;
  std::ostringstream text_;
};

} // namespace c10

#define LOG(level) ::c10::LogMessage(::c10::LogLevel::level, __FILE__, __LINE__).stream()
#define LOG_IF(level, condition)                                                                   \
  if (!(condition)) {                                                                              \
  } else                                                                                           \
    LOG(level)
#define VLOG(detail) LOG_IF(INFO, (detail) <= 0)
#define C10_LOG_API_USAGE_ONCE(name) static_cast<void>(0)
