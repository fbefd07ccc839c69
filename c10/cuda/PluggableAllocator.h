// A program's own allocator in the place of the caching one: two functions of a shared library that
// are asked for every tensor's memory.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

using PluggedAlloc = void* (*)(ssize_t size, int device, CUstream stream);
using PluggedFree = void (*)(void* memory, ssize_t size, int device, CUstream stream);

// From now on; once, and before any memory of a device was allocated.
C10_API void plug_allocator(PluggedAlloc alloc, PluggedFree free);
C10_API bool allocator_is_plugged() noexcept;

namespace detail {
// Null: nothing is plugged.
extern C10_API std::atomic<PluggedAlloc> plugged_alloc;
} // namespace detail
C10_API DataPtr allocate_plugged(size_t bytes, CUDAStream stream);

} // namespace c10::cuda
