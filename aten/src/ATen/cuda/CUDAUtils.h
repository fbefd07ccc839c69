// A check that kernels of extensions make of their arguments.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>

namespace at::cuda {

// Whether all tensors are on the current device.
inline bool check_device(ArrayRef<Tensor> tensors) {
  const c10::Device current(kCUDA, c10::cuda::current_device());
  for (const Tensor& tensor : tensors)
    if (tensor.defined() && tensor.device() != current) return false;
  return true;
}

} // namespace at::cuda
