// Process-wide settings and questions, as C++ users ask them.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/core/Context.h>
#include <c10/core/DeviceHooks.h>

namespace at {

inline bool hasCUDA() {
  c10::DeviceHooks* hooks = c10::device_hooks(DeviceType::CUDA);
  return hooks != nullptr && hooks->device_count() > 0;
}
// Libraries of linear algebra: LAPACK's routines are always there, MAGMA is not used.
inline bool hasMAGMA() { return false; }
inline bool hasLAPACK() { return true; }
inline bool hasMKL() { return false; }
inline bool hasOpenMP() { return false; }
inline const Generator& default_cpu_generator() { return detail::getDefaultCPUGenerator(); }

} // namespace at
