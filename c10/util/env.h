// Environment variables, read and set under one lock: the C library's own functions may not be
// called on several threads at once.
#pragma once
#include <optional>
#include <string>

#include <c10/macros/Macros.h>

namespace c10::utils {

// Raises when the name is empty or has a '=' in it.
C10_API void set_env(const char* name, const char* value, bool overwrite = true);
C10_API std::optional<std::string> get_env(const char* name) noexcept;
C10_API bool has_env(const char* name) noexcept;
// "1" is true and "0" false; anything else is warned about and, like an unset variable, neither.
C10_API std::optional<bool> check_env(const char* name);

} // namespace c10::utils
