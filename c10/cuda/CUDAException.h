// Checks of calls to the CUDA runtime, for extensions. This library itself calls the driver and
// includes no header of the toolkit, so none of its files includes this one.
#pragma once
#include <cuda_runtime_api.h>

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

namespace c10::cuda::detail {

// Throws what `code` means, with the call and its place. The runtime forgets its last error, so
// that the next check does not report this one again.
[[noreturn]] inline void throw_runtime_error(cudaError_t code, const char* call, const char* file,
                                             int line) {
  (void)cudaGetLastError();
  throw c10::Error(c10::str("CUDA error: ", cudaGetErrorString(code), " (", cudaGetErrorName(code),
                            ") from ", call, " at ", file, ":", line));
}

} // namespace c10::cuda::detail

#define C10_CUDA_CHECK(EXPR)                                                                       \
  do {                                                                                             \
    const cudaError_t cresset_code = (EXPR);                                                       \
    if (C10_UNLIKELY(cresset_code != cudaSuccess))                                                 \
      ::c10::cuda::detail::throw_runtime_error(cresset_code, #EXPR, __FILE__, __LINE__);           \
  } while (0)

// For destructors and other places that must not throw.
#define C10_CUDA_CHECK_WARN(EXPR)                                                                  \
  do {                                                                                             \
    const cudaError_t cresset_code = (EXPR);                                                       \
    if (C10_UNLIKELY(cresset_code != cudaSuccess)) {                                               \
      (void)cudaGetLastError();                                                                    \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(cresset_code));                              \
    }                                                                                              \
  } while (0)

// The caller deals with the code.
#define C10_CUDA_ERROR_HANDLED(EXPR) (EXPR)
#define C10_CUDA_IGNORE_ERROR(EXPR)                                                                \
  do {                                                                                             \
    if (C10_UNLIKELY((EXPR) != cudaSuccess)) (void)cudaGetLastError();                             \
  } while (0)
#define C10_CUDA_CLEAR_ERROR() ((void)cudaGetLastError())

// After <<<>>>: whether the launch was accepted. What the kernel does wrong shows at the next call
// that waits for it.
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
