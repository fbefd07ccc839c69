// The CUDA driver, reached through a table of function pointers that is filled by dlopen of
// libcuda.so.1 on first use. Nothing is linked and no CUDA header is included: the same library
// serves machines with and without a GPU, and a process that never asks for CUDA never loads the
// driver. driver() is one load and one predictable branch once the table is full.
#pragma once
#include <atomic>

#include <c10/cuda/DriverTypes.h>
#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

// X(member, symbol, parameters). `member` is the documented name, `symbol` the versioned name that
// the driver exports for the structure layouts above. A driver without one of the first list is
// refused; members of the second list are null where the driver is too old for them.
#define CRESSET_DRIVER_FUNCTIONS(X)                                                                \
  X(cuInit, cuInit, (unsigned))                                                                    \
  X(cuDriverGetVersion, cuDriverGetVersion, (int*))                                                \
  X(cuGetErrorName, cuGetErrorName, (CUresult, const char**))                                      \
  X(cuGetErrorString, cuGetErrorString, (CUresult, const char**))                                  \
  X(cuDeviceGet, cuDeviceGet, (CUdevice*, int))                                                    \
  X(cuDeviceGetCount, cuDeviceGetCount, (int*))                                                    \
  X(cuDeviceGetName, cuDeviceGetName, (char*, int, CUdevice))                                      \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t*, CUdevice))                                    \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int*, CUdevice_attribute, CUdevice))              \
  X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int*, CUdevice, CUdevice))                      \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                    \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, (CUdevice, unsigned*, int*))           \
  X(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                                 \
  X(cuCtxGetCurrent, cuCtxGetCurrent, (CUcontext*))                                                \
  X(cuCtxGetDevice, cuCtxGetDevice, (CUdevice*))                                                   \
  X(cuCtxSynchronize, cuCtxSynchronize, ())                                                        \
  X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, (CUcontext, unsigned))                           \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int*, int*))                        \
  X(cuMemGetInfo, cuMemGetInfo_v2, (size_t*, size_t*))                                             \
  X(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr*, size_t))                                             \
  X(cuMemFree, cuMemFree_v2, (CUdeviceptr))                                                        \
  X(cuMemHostAlloc, cuMemHostAlloc, (void**, size_t, unsigned))                                    \
  X(cuMemFreeHost, cuMemFreeHost, (void*))                                                         \
  X(cuMemHostRegister, cuMemHostRegister_v2, (void*, size_t, unsigned))                            \
  X(cuMemHostUnregister, cuMemHostUnregister, (void*))                                             \
  X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (CUdeviceptr*, void*, unsigned))      \
  X(cuPointerGetAttribute, cuPointerGetAttribute, (void*, CUpointer_attribute, CUdeviceptr))       \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, size_t, CUstream))         \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void*, CUdeviceptr, size_t, CUstream))               \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))         \
  X(cuMemcpyPeerAsync, cuMemcpyPeerAsync,                                                          \
    (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))                            \
  X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D*, CUstream))                         \
  X(cuMemsetD8Async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))              \
  X(cuMemsetD16Async, cuMemsetD16Async, (CUdeviceptr, unsigned short, size_t, CUstream))           \
  X(cuMemsetD32Async, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))                 \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, (CUstream*, unsigned, int))            \
  X(cuStreamDestroy, cuStreamDestroy_v2, (CUstream))                                               \
  X(cuStreamQuery, cuStreamQuery, (CUstream))                                                      \
  X(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                                          \
  X(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                           \
  X(cuStreamGetPriority, cuStreamGetPriority, (CUstream, int*))                                    \
  X(cuStreamIsCapturing, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus*))                  \
  X(cuEventCreate, cuEventCreate, (CUevent*, unsigned))                                            \
  X(cuEventRecord, cuEventRecord, (CUevent, CUstream))                                             \
  X(cuEventQuery, cuEventQuery, (CUevent))                                                         \
  X(cuEventSynchronize, cuEventSynchronize, (CUevent))                                             \
  X(cuEventElapsedTime, cuEventElapsedTime, (float*, CUevent, CUevent))                            \
  X(cuEventDestroy, cuEventDestroy_v2, (CUevent))                                                  \
  X(cuModuleLoadData, cuModuleLoadData, (CUmodule*, const void*))                                  \
  X(cuModuleUnload, cuModuleUnload, (CUmodule))                                                    \
  X(cuModuleGetFunction, cuModuleGetFunction, (CUfunction*, CUmodule, const char*))                \
  X(cuModuleGetGlobal, cuModuleGetGlobal_v2, (CUdeviceptr*, size_t*, CUmodule, const char*))       \
  X(cuFuncGetAttribute, cuFuncGetAttribute, (int*, CUfunction_attribute, CUfunction))              \
  X(cuFuncSetAttribute, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))               \
  X(cuLaunchKernel, cuLaunchKernel,                                                                \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,   \
     void**, void**))                                                                              \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,      \
    (int*, CUfunction, int, size_t))

#define CRESSET_DRIVER_OPTIONAL_FUNCTIONS(X)                                                       \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid*, CUdevice))                                      \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char*, int, CUdevice))                              \
  X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity,                                  \
    (size_t*, const CUmemAllocationProp*, int))                                                    \
  X(cuMemAddressReserve, cuMemAddressReserve,                                                      \
    (CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long))                               \
  X(cuMemAddressFree, cuMemAddressFree, (CUdeviceptr, size_t))                                     \
  X(cuMemCreate, cuMemCreate,                                                                      \
    (CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long))       \
  X(cuMemRelease, cuMemRelease, (CUmemGenericAllocationHandle))                                    \
  X(cuMemMap, cuMemMap,                                                                            \
    (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))               \
  X(cuMemUnmap, cuMemUnmap, (CUdeviceptr, size_t))                                                 \
  X(cuMemSetAccess, cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc*, size_t))         \
  X(cuLaunchKernelEx, cuLaunchKernelEx, (const CUlaunchConfig*, CUfunction, void**, void**))       \
  X(cuLaunchHostFunc, cuLaunchHostFunc, (CUstream, void (*)(void*), void*))                        \
  X(cuLibraryLoadData, cuLibraryLoadData,                                                          \
    (CUlibrary*, const void*, int*, void**, unsigned, int*, void**, unsigned))                     \
  X(cuLibraryUnload, cuLibraryUnload, (CUlibrary))                                                 \
  X(cuLibraryGetKernel, cuLibraryGetKernel, (CUkernel*, CUlibrary, const char*))                   \
  X(cuKernelGetFunction, cuKernelGetFunction, (CUfunction*, CUkernel))                             \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                \
  X(cuStreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph*))                                  \
  X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode*))  \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long))  \
  X(cuGraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                         \
  X(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))                                         \
  X(cuGraphDestroy, cuGraphDestroy, (CUgraph))                                                     \
  X(cuGraphDebugDotPrint, cuGraphDebugDotPrint, (CUgraph, const char*, unsigned))                  \
  X(cuProfilerStart, cuProfilerStart, ())                                                          \
  X(cuProfilerStop, cuProfilerStop, ())

namespace c10::cuda {

struct DriverApi {
#define CRESSET_MEMBER(member, symbol, parameters) CUresult(*member) parameters = nullptr;
  CRESSET_DRIVER_FUNCTIONS(CRESSET_MEMBER)
  CRESSET_DRIVER_OPTIONAL_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
};

// A call of the driver failed: torch.AcceleratorError in Python.
class C10_API AcceleratorError : public Error {
 public:
  AcceleratorError(std::string message, int code) : Error(std::move(message)), code_(code) {}
  ~AcceleratorError() override;
  int code() const noexcept { return code_; }

 private:
  int code_;
};

namespace detail {
// Null until the driver has been loaded and initialised.
C10_API extern std::atomic<const DriverApi*> loaded_driver;
C10_API const DriverApi& load_driver();
[[noreturn]] C10_API void raise(CUresult result, const char* call);
} // namespace detail

// The driver's functions. The first call loads the library and runs cuInit; any thread may make it.
// Throws c10::Error where there is no driver, no device, or the process was forked after another
// call had initialised it ("Cannot re-initialize CUDA in forked subprocess").
inline const DriverApi& driver() {
  const DriverApi* api = detail::loaded_driver.load(std::memory_order_acquire);
  return C10_LIKELY(api != nullptr) ? *api : detail::load_driver();
}

// The same without an exception: null where CUDA cannot be used.
C10_API const DriverApi* try_driver() noexcept;

// Whether this process was forked from one that had loaded the driver, which then stays unusable.
C10_API bool in_bad_fork() noexcept;

// Throws AcceleratorError ("CUDA error: ...", naming `call`) unless `result` is CUDA_SUCCESS.
inline void check(CUresult result, const char* call) {
  if (C10_UNLIKELY(result != CUDA_SUCCESS)) detail::raise(result, call);
}

} // namespace c10::cuda

// CRESSET_CUDA_CHECK(cuStreamSynchronize, stream): calls the driver and throws on failure.
#define CRESSET_CUDA_CHECK(function, ...)                                                          \
  ::c10::cuda::check(::c10::cuda::driver().function(__VA_ARGS__), #function)
