// STD_TORCH_CHECK(condition, parts of a message...): throws std::runtime_error, so that a check
// needs no part of this library. Parts are what a stream can print.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace torch::headeronly::detail {
template <class... Parts> [[noreturn]] void throw_check(const char* condition, const char* function,
                                                        const char* file, int line,
                                                        const Parts&... parts) {
  std::ostringstream message;
  if constexpr (sizeof...(Parts) == 0)
    message << "Expected " << condition << " to be true, but got false.";
  else
    (message << ... << parts);
  message << " (" << function << " at " << file << ":" << line << ")";
  throw std::runtime_error(message.str());
}
} // namespace torch::headeronly::detail

#define STD_TORCH_CHECK(condition, ...)                                                            \
  do {                                                                                             \
    if (__builtin_expect(!(condition), 0))                                                         \
      ::torch::headeronly::detail::throw_check(#condition, __func__, __FILE__, __LINE__,           \
                                               ##__VA_ARGS__);                                     \
  } while (false)
