// Guards of devices, and which device a tensor's kernel has to work on.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

namespace at {

// The device of a tensor; nothing for an undefined one.
inline std::optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Device>(tensor.device()) : std::nullopt;
}
inline std::optional<Device> device_of(const std::optional<Tensor>& tensor) {
  return tensor ? device_of(*tensor) : std::nullopt;
}
// Of the first tensor of a list.
inline std::optional<Device> device_of(ArrayRef<Tensor> tensors) {
  return tensors.empty() ? std::nullopt : device_of(tensors.front());
}

} // namespace at
