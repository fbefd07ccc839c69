// Memory that a tensor gives up while another thread may still compute on it.
//
// Note [Tensors that change under a kernel]
// A kernel takes sizes, strides and addresses of its arguments, lets go of the interpreter's lock
// and computes. Meanwhile another thread may run x.resize_(), x.set_(), x.t_() or x.data = y on one
// of them. It must not compute on memory that is gone, nor find the strides it refers to
// overwritten: whoever changes a tensor in place hands what it replaces to retire(), and lists of
// sizes are replaced, not written over. What was retired goes when all work has ended that could
// have seen it. The kernel's result is then that of the old tensor or of a mixture, never of
// foreign memory.
#pragma once
#include <cstdint>

#include <c10/core/Storage.h>

namespace c10 {

// Work that runs without the interpreter's lock, from the first call to the second. Any thread.
C10_API uint64_t begin_unlocked_work();
C10_API void end_unlocked_work(uint64_t ticket) noexcept;
// Whether such work is running.
C10_API bool has_unlocked_work() noexcept;

// Calls end(object) now, or when the last unlocked work that has begun before now has ended.
C10_API void retire(void (*end)(void* object), void* object) noexcept;
C10_API void retire(DataPtr memory);
C10_API void retire(Storage storage) noexcept;

} // namespace c10
