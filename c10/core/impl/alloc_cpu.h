// Plain host memory, aligned as tensor data is, for backends that keep theirs on the host. It does
// not come from the pools of the CPU allocator and is not counted there.
#pragma once
#include <cstddef>

#include <c10/macros/Macros.h>

namespace c10 {

// Null for zero bytes; OutOfMemoryError where there is no more.
C10_API void* alloc_cpu(size_t bytes);
C10_API void free_cpu(void* data);

} // namespace c10
