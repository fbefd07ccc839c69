// What the host side of hand-written kernels shares: the check that all operands lie on the call's
// device, the current stream, where kernels report bad indices, and sizes of grids.
#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/Launch.h>
#include <ATen/cuda/device/Arguments.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/ErrorSlot.h>

namespace at::cuda {

inline CUstream current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

// Throws PyTorch's error unless every defined tensor lies on the first one's device. Undefined and
// null ones are skipped.
TORCH_API void check_same_device(std::initializer_list<const Tensor*> tensors);
inline const Tensor* given(const std::optional<Tensor>& t) { return t ? &*t : nullptr; }

// What a kernel that takes indices is passed; `op` is a literal.
inline device::IndexCheck index_check(const char* op) {
  const CUdeviceptr slot = c10::cuda::error_slot(c10::cuda::current_device());
  return {reinterpret_cast<c10::cuda::DeviceError*>(slot), op};
}

inline bool is_aligned16(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Blocks for `items` threads, at most `limit` (kernels then take several items each).
inline unsigned blocks_for(int64_t items, int threads, int64_t limit = 2147483647) {
  const int64_t blocks = (items + threads - 1) / threads;
  return static_cast<unsigned>(blocks < limit ? blocks : limit);
}

// The kernels NAME_f32, NAME_f64, NAME_f16 and NAME_bf16 of a program, in the order of
// floating_slot.
#define CRESSET_FLOATING_KERNELS(program, name)                                                    \
  {                                                                                                \
    {program, name "_f32"}, {program, name "_f64"}, {program, name "_f16"}, {                      \
      program, name "_bf16"                                                                        \
    }                                                                                              \
  }

// "f32", "bf16", ... for a table of kernels: the place of a floating type in {f32, f64, f16, bf16},
// or NotImplementedError naming `op`.
TORCH_API int floating_slot(ScalarType dtype, const char* op);

} // namespace at::cuda
