// torch::stable::Device: a kind of device and an index, -1 for the current one.
#pragma once
#include <string>

#include <torch/headeronly/core/DeviceType.h>
#include <torch/headeronly/util/Exception.h>

namespace torch::stable {

using DeviceType = torch::headeronly::DeviceType;
using DeviceIndex = int8_t;

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  // "cuda:1"; defined in stableivalue_conversions.h.
  Device(const std::string& text);
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  void set_index(DeviceIndex index) { index_ = index; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool operator==(const Device& o) const { return type_ == o.type_ && index_ == o.index_; }
  bool operator!=(const Device& o) const { return !(*this == o); }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

} // namespace torch::stable
