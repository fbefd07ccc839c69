// Reports from functors, which see nothing but their operands: the device's error slot stands in a
// variable of the program, set when the program is loaded (ATen/cuda/Program.cpp).
#pragma once

#include <ATen/cuda/device/ErrorSlot.cuh>

#if defined(CRESSET_EMULATOR)
#define CRESSET_PUBLIC_VARIABLE __attribute__((visibility("default")))
#else
#define CRESSET_PUBLIC_VARIABLE __device__
#endif
extern "C" {
CRESSET_PUBLIC_VARIABLE at::device::DeviceError* cresset_fault_slot = nullptr;
}

namespace at::device {

using c10::cuda::kFaultNoProbability;
using c10::cuda::kFaultZeroDivision;

CRESSET_OUT_OF_LINE void report_fault(int kind) {
  report_index(cresset_fault_slot, nullptr, kind, 0, 0);
}

} // namespace at::device
