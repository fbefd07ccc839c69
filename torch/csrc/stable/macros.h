// Checks of calls of the CUDA runtime for extensions with a stable ABI: a failure throws
// std::runtime_error. The extension links that runtime, not the library.
#pragma once
#include <torch/headeronly/util/Exception.h>

// Of an expression that is a cudaError_t.
#define STD_CUDA_CHECK(EXPRESSION)                                                                 \
  do {                                                                                             \
    const cudaError_t cresset_error = (EXPRESSION);                                                \
    STD_TORCH_CHECK(cresset_error == cudaSuccess,                                                  \
                    "CUDA error: ", cudaGetErrorString(cresset_error));                            \
  } while (false)
// Behind a launch: what the launch itself failed with.
#define STD_CUDA_KERNEL_LAUNCH_CHECK() STD_CUDA_CHECK(cudaGetLastError())
