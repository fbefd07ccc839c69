// The version of the interface an extension was compiled for: major, minor and patch in the upper
// bytes of one number, as aoti_torch_abi_version returns it for the library that runs.
#pragma once
#include <torch/version.h>

#define TORCH_ABI_VERSION                                                                          \
  (((0ULL + TORCH_VERSION_MAJOR) << 56) | ((0ULL + TORCH_VERSION_MINOR) << 48) |                   \
   ((0ULL + TORCH_VERSION_PATCH) << 40))
