// Calls of the runtime that extensions make through this library. Which device is current and what
// devices can do is CUDADevice.h's.
#pragma once
#include <c10/cuda/CUDADevice.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

inline DeviceIndex device_count_ensure_non_zero() {
  const int count = device_count_or_throw();
  TORCH_CHECK(count > 0, "No CUDA GPUs are available");
  return static_cast<DeviceIndex>(count);
}

// A copy in the order of a stream that has arrived when the call returns.
inline void memcpy_and_sync(void* dst, const void* src, int64_t nbytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  C10_CUDA_CHECK(cudaMemcpyAsync(dst, src, static_cast<size_t>(nbytes), kind, stream));
  C10_CUDA_CHECK(cudaStreamSynchronize(stream));
}
inline void stream_synchronize(cudaStream_t stream) {
  C10_CUDA_CHECK(cudaStreamSynchronize(stream));
}

} // namespace c10::cuda
