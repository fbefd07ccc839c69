// cuDNN's handle of the current device and stream, for extensions.
#pragma once
#include <ATen/cudnn/cudnn-wrapper.h>

#include <ATen/cuda/CUDAContext.h>

namespace at::native {

// One per thread and device, bound to the current stream each time it is asked for; never
// destroyed.
inline cudnnHandle_t getCudnnHandle() {
  thread_local std::array<cudnnHandle_t, c10::cuda::kMaxDevices> handles{};
  return at::cuda::detail::current_handle(
      handles, [](cudnnHandle_t* made) { AT_CUDNN_CHECK(cudnnCreate(made)); },
      [](cudnnHandle_t handle, cudaStream_t stream) {
        AT_CUDNN_CHECK(cudnnSetStream(handle, stream));
      });
}

} // namespace at::native
