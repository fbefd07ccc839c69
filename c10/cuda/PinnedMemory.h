// Page-locked host memory, which the GPU can read and write by itself, so that copies need not
// wait. Locking pages costs the driver milliseconds: freed blocks are kept and handed out again
// once the streams that used them have got past it.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

// Its data is on the CPU. Throws where there is no driver.
C10_API Allocator* pinned_allocator();
// Whether the address lies in page-locked memory, ours or another library's. False, without
// loading anything, in a process that does not use CUDA.
C10_API bool is_pinned(const void* address);
// A copy between `data` and a device was queued on `stream`: the memory stays until it has run.
// Nothing for memory of another origin.
C10_API void record_pinned_use(const DataPtr& data, CUDAStream stream);
// Gives unused blocks back to the system.
C10_API void empty_pinned_cache();

struct PinnedStats {
  int64_t live_bytes = 0;
  int64_t cached_bytes = 0;
  int64_t peak_live_bytes = 0;
  int64_t allocated_bytes = 0; // all that were ever handed out
};
C10_API PinnedStats pinned_stats();
// Counts the peak, or all that was handed out, from now on.
C10_API void reset_pinned_stats(bool peak);

} // namespace c10::cuda
