// Warnings that a process gives once, or every time after torch.set_warn_always(True). The setting
// lives above c10, whose own TORCH_WARN_ONCE cannot know it.
#pragma once
#include <ATen/core/Context.h>
#include <c10/util/Exception.h>

#define AT_WARN_ONCE(...)                                                                          \
  do {                                                                                             \
    static bool said = false;                                                                      \
    if (!said || ::at::globalContext().warn_always) {                                              \
      said = true;                                                                                 \
      TORCH_WARN(__VA_ARGS__);                                                                     \
    }                                                                                              \
  } while (false)
