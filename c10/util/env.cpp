// See env.h.
#include <c10/util/env.h>

#include <cstdlib>
#include <mutex>

#include <c10/util/Exception.h>

namespace c10::utils {
namespace {
std::mutex& lock() {
  static std::mutex one;
  return one;
}
} // namespace

void set_env(const char* name, const char* value, bool overwrite) {
  const std::lock_guard<std::mutex> held(lock());
  TORCH_CHECK(setenv(name, value, overwrite ? 1 : 0) == 0, "set_env: '", name,
              "' is no name of an environment variable, or there is no memory for it");
}

std::optional<std::string> get_env(const char* name) noexcept {
  const std::lock_guard<std::mutex> held(lock());
  const char* found = std::getenv(name);
  if (found == nullptr) return std::nullopt;
  return std::string(found);
}

bool has_env(const char* name) noexcept { return get_env(name).has_value(); }

std::optional<bool> check_env(const char* name) {
  const std::optional<std::string> found = get_env(name);
  if (!found) return std::nullopt;
  if (*found == "1" || *found == "0") return *found == "1";
  TORCH_WARN("Ignoring invalid value for boolean flag ", name, ": ", *found,
             "; valid values are 0 or 1.");
  return std::nullopt;
}

} // namespace c10::utils
