// What registration blocks threw while their library was loaded. A block runs in a static
// initialiser, where an exception would end the process: LibraryInit keeps it here, and whoever
// loads libraries raises it. Where Python is the one who loads, it is told at once by `notify`.
#pragma once
#include <string>
#include <vector>

#include <c10/macros/Macros.h>

namespace torch::detail {

struct RegistrationFailure {
  std::string file;  // of the library that holds the block
  std::string ns;    // of the block
  std::string block; // "TORCH_LIBRARY(ns)"
  std::string text;  // of the exception
};

// Keeps a failure of the library that holds `address`.
TORCH_API void keep_registration_failure(const void* address, std::string ns, std::string block,
                                         std::string text);
// All failures so far, oldest first. Any thread.
TORCH_API std::vector<RegistrationFailure> registration_failures();
// From now on `notify` is called with each new failure, on the thread that loads the library and
// with the loader's locks held; it must not throw. Without one a failure goes to stderr.
TORCH_API void set_registration_notify(void (*notify)(const RegistrationFailure& failure) noexcept);

} // namespace torch::detail
