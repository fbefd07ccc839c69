// torch::cuda.
#pragma once
#include <ATen/Context.h>
#include <c10/core/DeviceHooks.h>
#include <torch/types.h>

namespace torch::cuda {

inline size_t device_count() {
  c10::DeviceHooks* hooks = c10::device_hooks(c10::DeviceType::CUDA);
  return hooks ? static_cast<size_t>(hooks->device_count()) : 0;
}
inline bool is_available() { return device_count() > 0; }
// Seed the default generators of all devices.
inline void manual_seed_all(uint64_t seed) {
  if (c10::DeviceHooks* hooks = c10::device_hooks(c10::DeviceType::CUDA)) hooks->seed_all(seed);
}
inline void manual_seed(uint64_t seed) { manual_seed_all(seed); }

} // namespace torch::cuda
