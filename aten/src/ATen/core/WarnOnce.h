// Warnings that a process gives once, or every time after torch.set_warn_always(True) in Python or
// c10::WarningUtils::set_warnAlways(true) in C++. The first setting lives above c10, whose own
// TORCH_WARN_ONCE cannot know it.
#pragma once
#include <ATen/core/Context.h>
#include <c10/util/Exception.h>

namespace c10::WarningUtils {
C10_API bool get_warnAlways() noexcept;
}

#define AT_WARN_ONCE(...)                                                                          \
  do {                                                                                             \
    static bool said = false;                                                                      \
    if (!said || ::at::globalContext().warn_always || ::c10::WarningUtils::get_warnAlways()) {     \
      said = true;                                                                                 \
      TORCH_WARN(__VA_ARGS__);                                                                     \
    }                                                                                              \
  } while (false)
