// Named ranges and moments for the vendor's timeline tools, through the library of their tools
// extension (NVTX), which is loaded when first asked for. Without it nothing happens.
#pragma once

#include <cstdint>

#include <c10/macros/Macros.h>

namespace at::cuda {

// Opens a range of this thread, inside those that are open; returns its depth, counted from 0, and
// a negative number where nobody listens.
TORCH_API int nvtx_push(const char* name);
// Closes the innermost range of this thread and returns its depth.
TORCH_API int nvtx_pop();
// Opens a range that may end on another thread; returns the number to end it by.
TORCH_API uint64_t nvtx_start(const char* name);
TORCH_API void nvtx_end(uint64_t range);
TORCH_API void nvtx_mark(const char* name);

} // namespace at::cuda
