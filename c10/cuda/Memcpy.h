// Copies of bytes between host and devices, in stream order. Strides and dtypes are the tensor
// library's affair.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

// One end of a copy. `owner`, where given, is what keeps the memory alive: page-locked memory is
// then held until the copy has run.
struct CopyEnd {
  void* data;
  Device device; // with an index, unless the CPU
  const DataPtr* owner = nullptr;
};

// Queued on the current stream of the device; between two devices on the source's, with the
// destination's waiting for it. The host waits for the result unless both ends are devices or
// `non_blocking` is set and the host's end is page-locked; after a wait what the device recorded is
// raised (ErrorSlot.h). The host's end may be reused on return, except after a non-blocking copy.
C10_API void copy_bytes(const CopyEnd& dst, const CopyEnd& src, size_t bytes, bool non_blocking);

} // namespace c10::cuda
