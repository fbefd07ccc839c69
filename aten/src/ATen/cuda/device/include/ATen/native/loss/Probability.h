// Reports an input outside [0, 1], NaN included; the next call that waits for the device raises.
// Included by device programs in place of the host's header of the same name.
#pragma once

#include <ATen/cuda/device/Fault.cuh>

namespace at::native::fn {

template <class V> CRESSET_DEVICE_FN void check_probability(V x) {
  if (!(x >= V(0) && x <= V(1))) at::device::report_fault(at::device::kFaultNoProbability);
}

} // namespace at::native::fn
