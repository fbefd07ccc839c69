// Reports of bad values from kernels: the first one claims the device's slot in mapped host memory
// (c10/cuda/ErrorSlot.h), the element is skipped and the kernel goes on.
#pragma once

#include <ATen/cuda/device/Prelude.cuh>

namespace at::device {

__device__ __noinline__ void report_index(DeviceError* slot, const char* op, int dim, long value,
                                          long bound) {
  if (atomicCAS(&slot->claimed, 0u, 1u) != 0u) return;
  slot->dim = dim;
  slot->value = value;
  slot->bound = bound;
  slot->op = op;
  __threadfence_system();
}

CRESSET_DEVICE_FN bool IndexCheck::within(long i, long bound, int dim) const {
  if (static_cast<unsigned long>(i) < static_cast<unsigned long>(bound)) return true;
  report_index(slot, op, dim, i, bound);
  return false;
}

CRESSET_DEVICE_FN long IndexCheck::wrapped(long i, long bound, int dim) const {
  const long j = i < 0 ? i + bound : i;
  if (static_cast<unsigned long>(j) < static_cast<unsigned long>(bound)) return j;
  report_index(slot, op, dim, i, bound);
  return -1;
}

} // namespace at::device
