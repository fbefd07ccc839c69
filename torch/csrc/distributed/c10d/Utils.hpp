// Small checks for backends that C++ extensions bring.
#pragma once
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace c10d {

inline std::vector<std::vector<int64_t>> getSizes(const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<int64_t>> sizes;
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.sizes().vec());
  return sizes;
}

inline std::vector<at::Device> getDevices(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Device> devices;
  for (const at::Tensor& tensor : tensors) devices.push_back(tensor.device());
  return devices;
}

} // namespace c10d
