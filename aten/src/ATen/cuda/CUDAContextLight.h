// What CUDA code of extensions asks about the current device and stream, in terms of the runtime's
// types. Header only: this library does not link the runtime, extensions do.
#pragma once
#include <array>
#include <mutex>

#include <cuda_runtime_api.h>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace at::cuda {

using namespace c10::cuda; // NOLINT: at::cuda offers what c10::cuda has

inline int64_t getNumGPUs() { return c10::cuda::device_count(); }
inline bool is_available() { return c10::cuda::device_count() > 0; }

// The runtime's description of a device, asked for once. A negative index is the current device.
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  static std::array<cudaDeviceProp, c10::cuda::kMaxDevices> properties;
  static std::array<std::once_flag, c10::cuda::kMaxDevices> asked;
  const c10::DeviceIndex index = device < 0 ? c10::cuda::current_device() : device;
  c10::cuda::check_device(index);
  cudaDeviceProp& found = properties[static_cast<size_t>(index)];
  std::call_once(asked[static_cast<size_t>(index)],
                 [&] { C10_CUDA_CHECK(cudaGetDeviceProperties(&found, index)); });
  return &found;
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(-1); }
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }
inline bool canDeviceAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer) {
  return c10::cuda::can_access_peer(device, peer);
}
inline c10::Allocator* getCUDADeviceAllocator() { return c10::cuda::CUDACachingAllocator::get(); }

} // namespace at::cuda
