// Events under the name that extensions use.
#pragma once
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAEvent.h>

namespace at::cuda {
using c10::cuda::CUDAEvent;
} // namespace at::cuda
