// The table of device kinds. See DeviceHooks.h.
#include <c10/core/DeviceHooks.h>

#include <atomic>

namespace c10 {
namespace {
std::atomic<DeviceHooks*> g_hooks[kNumDeviceTypes] = {};
}

DeviceHooks::~DeviceHooks() = default;

void register_device_hooks(DeviceType type, DeviceHooks* hooks) {
  g_hooks[static_cast<int>(type)].store(hooks, std::memory_order_release);
}

DeviceHooks* device_hooks(DeviceType type) noexcept {
  const int index = static_cast<int>(type);
  if (index < 0 || index >= kNumDeviceTypes) return nullptr;
  return g_hooks[index].load(std::memory_order_acquire);
}

DeviceHooks& require_device_hooks(DeviceType type) {
  DeviceHooks* hooks = device_hooks(type);
  TORCH_CHECK(hooks != nullptr, "PyTorch is not linked with support for ", type, " devices");
  return *hooks;
}

Device usable_device(Device device) {
  if (device.is_cpu() || device.is_meta()) return device;
  DeviceHooks* hooks = device_hooks(device.type());
  return hooks != nullptr ? hooks->resolve(device) : device;
}

DeviceGuard::DeviceGuard(Device device) {
  if (device.is_cpu() || device.is_meta()) return;
  hooks_ = device_hooks(device.type());
  if (hooks_ != nullptr) before_ = hooks_->exchange_device(hooks_->resolve(device).index());
}

DeviceGuard::~DeviceGuard() {
  if (hooks_ == nullptr) return;
  try {
    hooks_->exchange_device(before_);
  } catch (const Error&) {
    // The driver is gone, and with it the difference between its devices.
  }
}

} // namespace c10
