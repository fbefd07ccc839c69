// Launching device kernels. A kernel is a constant handle {program, name}; the first launch on a
// device loads (or compiles) its program and keeps the function's address in the handle, so that a
// later launch is one load, the argument pointers and cuLaunchKernel. Nothing is looked up by name
// and nothing is allocated on the hot path.
//
//   namespace { at::cuda::Kernel kNorm("native/norm/LayerNorm.cuh", "layer_norm_f32"); }
//   at::cuda::launch(kNorm, grid, block, shared_bytes, stream, x, y, int64_t(n), 1e-5f);
//
// A program is a device source below aten/src/ATen/native (every *.cuh file there is one; headers
// they share are in ATen/cuda/device), embedded in the library with every header it includes. Where
// nvcc was found when the library was built its machine code is embedded too; otherwise, or on
// another GPU, NVRTC compiles the same text at run time and the result is kept on disk (see
// Program.h). Kernels are `extern "C" __global__`, with the element type in their name.
//
// Everything here runs on the calling thread's current device (c10::cuda::CUDAGuard) and throws
// c10::Error when the driver refuses; it never waits for the device. Safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include <c10/cuda/CUDADevice.h>
#include <c10/macros/Macros.h>

namespace at::cuda {

using namespace c10::cuda; // CUstream, CUfunction: the driver's types

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr Dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// One function of a program. Make it a variable of static storage: it is constant-initialised, and
// its address is its identity. `options` are extra compiler options separated by spaces
// ("-DTILE=64"); a program with options is compiled at run time, once per set of options.
class TORCH_API Kernel {
 public:
  constexpr Kernel(const char* program, const char* name, const char* options = "")
      : program_(program), name_(name), options_(options) {}
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // The function on a device whose context is current on this thread.
  CUfunction function(int device) const {
    const CUfunction found = loaded_[device].load(std::memory_order_acquire);
    return C10_LIKELY(found != nullptr) ? found : load(device);
  }
  const char* name() const { return name_; }

 private:
  C10_COLD CUfunction load(int device) const;

  const char* program_;
  const char* name_;
  const char* options_;
  mutable std::atomic<CUfunction> loaded_[kMaxDevices] = {};
};

// Starts `kernel` on the current device; args[i] points to the i-th argument's value.
// shared_bytes above 48 KB raise the kernel's limit first. An empty grid starts nothing.
TORCH_API void launch_raw(const Kernel& kernel, Dim3 grid, Dim3 block, unsigned shared_bytes,
                          CUstream stream, void** args);
// The same for a function address the caller keeps itself.
TORCH_API void launch_function(CUfunction function, Dim3 grid, Dim3 block, unsigned shared_bytes,
                               CUstream stream, void** args);

// The same for a kernel that begins with CRESSET_AWAIT_PREDECESSOR (device/Pointwise.cuh): it may
// be set up while the kernel before it on the stream ends, which takes 1 % off a training step of
// GPT-2 and 4 % off one of ResNet-50. Needs compute capability 9.0; CRESSET_CUDA_OVERLAP=0 turns it
// off, and so does a stream that is being captured.
TORCH_API void launch_overlapping(CUfunction function, Dim3 grid, Dim3 block, CUstream stream,
                                  void** args);

// The argument types must be exactly the kernel's parameter types: cast at the call.
template <class... Args> inline void launch(const Kernel& kernel, Dim3 grid, Dim3 block,
                                            unsigned shared_bytes, CUstream stream,
                                            const Args&... args) {
  void* pointers[sizeof...(Args) + 1] = {
      const_cast<void*>(static_cast<const volatile void*>(&args))...};
  launch_raw(kernel, grid, block, shared_bytes, stream, pointers);
}

// Multiprocessors of the current device: the base of grids whose blocks each do many pieces.
TORCH_API int multiprocessors();
// Keeps the current stream busy for a number of clock cycles.
TORCH_API void sleep(int64_t cycles);

} // namespace at::cuda
