// Guards that make a device current while they live. c10::DeviceGuard itself is beside the hooks
// that it calls.
#pragma once
#include <optional>

#include <c10/core/DeviceHooks.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10 {

// A guard that may hold no device yet.
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(Device device) { reset_device(device); }
  explicit OptionalDeviceGuard(std::optional<Device> device) {
    if (device) reset_device(*device);
  }
  void reset_device(Device device) {
    if (!original_)
      if (DeviceHooks* hooks = device_hooks(device.type()))
        original_ = Device(device.type(), hooks->current_device());
    current_ = device;
    guard_.reset();
    guard_.emplace(device);
  }
  std::optional<Device> original_device() const { return original_; }
  std::optional<Device> current_device() const { return current_; }

 private:
  std::optional<DeviceGuard> guard_;
  std::optional<Device> original_, current_;
};

} // namespace c10

namespace at {
using c10::DeviceGuard;
using c10::OptionalDeviceGuard;
} // namespace at
