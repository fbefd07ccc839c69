// On the device an integer division by zero is reported, and raised by the next call that waits.
// Included by device programs in place of the host's header of the same name.
#pragma once

#include <ATen/cuda/device/Fault.cuh>

namespace at::native::fn {
CRESSET_DEVICE_FN void throw_zero_division() {
  at::device::report_fault(at::device::kFaultZeroDivision);
}
} // namespace at::native::fn
