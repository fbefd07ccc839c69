// What functions and methods make of the options a program gives, beyond dtype, layout, device and
// pinning, which the operator takes as arguments. For the generated definitions.
#pragma once
#include <optional>

#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>

namespace at::detail {

// The memory format of a call: in the options or an argument of its own, not both.
inline std::optional<c10::MemoryFormat> format_of(const c10::TensorOptions& options,
                                                  std::optional<c10::MemoryFormat> argument) {
  TORCH_CHECK(!argument || !options.memory_format_opt(),
              "Cannot set memory_format both in TensorOptions and explicit argument; please delete "
              "the redundant setter.");
  return argument ? argument : options.memory_format_opt();
}

// A conversion keeps whether gradients are wanted.
inline void check_keeps_gradient(const c10::TensorOptions& options) {
  TORCH_CHECK(!options.requires_grad(),
              "Tensor.to(options): expects unset requires_grad flag, but got "
              "requires_grad=true; call requires_grad_() on the result");
}

} // namespace at::detail
