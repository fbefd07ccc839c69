// From the error codes of the C interface to exceptions.
#pragma once
#include <stdexcept>
#include <string>

#include <torch/csrc/stable/c/shim.h>

namespace torch::stable::detail {

[[noreturn]] inline void throw_failure(const char* call) {
  std::string text = std::string(call) + " failed";
  if (&torch_last_error_message != nullptr) text = torch_last_error_message();
  throw std::runtime_error(text);
}
inline void check(AOTITorchError code, const char* call) {
  if (code != AOTI_TORCH_SUCCESS) throw_failure(call);
}

} // namespace torch::stable::detail

// Throws std::runtime_error with the text of the failure.
#define TORCH_ERROR_CODE_CHECK(call) ::torch::stable::detail::check((call), #call)
