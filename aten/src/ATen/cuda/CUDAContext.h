// The current device, stream and handles of the CUDA libraries, for extensions. A library's handle
// is there where its header is installed; an extension that asks for one links that library.
#pragma once
#include <array>
#include <memory>

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::cuda {
namespace detail {

// One handle per thread and device, made at its first use and bound to the current stream each
// time it is asked for. Handles are not destroyed: at the end of the process the driver may be
// gone before the thread is.
template <class Handle, class Create, class Bind> Handle
current_handle(std::array<Handle, c10::cuda::kMaxDevices>& handles, Create create, Bind bind) {
  const c10::DeviceIndex device = c10::cuda::current_device();
  const c10::cuda::CUDAGuard guard(device);
  Handle& handle = handles[static_cast<size_t>(device)];
  if (handle == nullptr) create(&handle);
  bind(handle, c10::cuda::getCurrentCUDAStream(device).stream());
  return handle;
}

} // namespace detail

#if __has_include(<cublas_v2.h>)
inline cublasHandle_t getCurrentCUDABlasHandle() {
  thread_local std::array<cublasHandle_t, c10::cuda::kMaxDevices> handles{};
  return detail::current_handle(
      handles, [](cublasHandle_t* made) { TORCH_CUDABLAS_CHECK(cublasCreate(made)); },
      [](cublasHandle_t handle, cudaStream_t stream) {
        TORCH_CUDABLAS_CHECK(cublasSetStream(handle, stream));
      });
}
#endif
#if __has_include(<cusparse.h>)
inline cusparseHandle_t getCurrentCUDASparseHandle() {
  thread_local std::array<cusparseHandle_t, c10::cuda::kMaxDevices> handles{};
  return detail::current_handle(
      handles, [](cusparseHandle_t* made) { TORCH_CUDASPARSE_CHECK(cusparseCreate(made)); },
      [](cusparseHandle_t handle, cudaStream_t stream) {
        TORCH_CUDASPARSE_CHECK(cusparseSetStream(handle, stream));
      });
}
#endif
#if __has_include(<cusolverDn.h>)
inline cusolverDnHandle_t getCurrentCUDASolverDnHandle() {
  thread_local std::array<cusolverDnHandle_t, c10::cuda::kMaxDevices> handles{};
  return detail::current_handle(
      handles, [](cusolverDnHandle_t* made) { TORCH_CUSOLVER_CHECK(cusolverDnCreate(made)); },
      [](cusolverDnHandle_t handle, cudaStream_t stream) {
        TORCH_CUSOLVER_CHECK(cusolverDnSetStream(handle, stream));
      });
}
#endif

} // namespace at::cuda
