// Limits that extensions with CUDA code ask for. The macros of exported symbols are in
// c10/macros/Macros.h.
#pragma once
#include <c10/cuda/CUDADevice.h>
#include <c10/macros/Macros.h>

#define C10_COMPILE_TIME_MAX_GPUS ::c10::cuda::kMaxDevices
