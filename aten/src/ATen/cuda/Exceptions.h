// Checks of calls to the CUDA libraries, for extensions. Each library's check is there where its
// header is installed beside the compiler.
#pragma once
#include <cuda.h>

#include <c10/cuda/CUDAException.h>

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif
#if __has_include(<cusparse.h>)
#include <cusparse.h>
#endif
#if __has_include(<cusolverDn.h>)
#include <cusolverDn.h>
#endif

#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)

// `good` is what the library returns of a call that worked.
#define CRESSET_LIBRARY_CHECK(EXPR, good, library)                                                 \
  do {                                                                                             \
    const auto cresset_code = (EXPR);                                                              \
    TORCH_CHECK(cresset_code == (good), "CUDA error: ", library, " failed with code ",             \
                static_cast<int>(cresset_code), " when calling `" #EXPR "`");                      \
  } while (0)

#define AT_CUDA_DRIVER_CHECK(EXPR) CRESSET_LIBRARY_CHECK(EXPR, CUDA_SUCCESS, "the driver")
#define AT_CUDA_NVRTC_CHECK(EXPR) CRESSET_LIBRARY_CHECK(EXPR, NVRTC_SUCCESS, "NVRTC")
#define TORCH_CUDABLAS_CHECK(EXPR) CRESSET_LIBRARY_CHECK(EXPR, CUBLAS_STATUS_SUCCESS, "cuBLAS")
#define TORCH_CUDASPARSE_CHECK(EXPR)                                                               \
  CRESSET_LIBRARY_CHECK(EXPR, CUSPARSE_STATUS_SUCCESS, "cuSPARSE")
#define TORCH_CUSOLVER_CHECK(EXPR) CRESSET_LIBRARY_CHECK(EXPR, CUSOLVER_STATUS_SUCCESS, "cuSOLVER")
#define AT_CUDNN_CHECK(EXPR, ...) CRESSET_LIBRARY_CHECK(EXPR, CUDNN_STATUS_SUCCESS, "cuDNN")
