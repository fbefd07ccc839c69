// Page-locked host memory as seen from tensors. Which device's driver locks the pages is the device
// hooks' affair.
#include <ATen/core/Tensor.h>
#include <ATen/native/copy/Native.h>
#include <ATen/ops/_pin_memory.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceHooks.h>

namespace at::native {
namespace {

DeviceType accelerator(const std::optional<Device>& device) {
  return device ? device->type() : kCUDA;
}

} // namespace

bool is_pinned(const Tensor& self, std::optional<Device> device) {
  if (!self.is_cpu() || !self.has_storage()) return false;
  c10::DeviceHooks* hooks = c10::device_hooks(accelerator(device));
  return hooks != nullptr && hooks->is_pinned(self.storage()->data());
}

Tensor pin_memory(const Tensor& self, std::optional<Device> device) {
  return is_pinned(self, device) ? self : at::_pin_memory(self, device);
}

Tensor _pin_memory(const Tensor& self, std::optional<Device> device) {
  TORCH_CHECK(self.is_cpu() && self.layout() == kStrided, "cannot pin '", self,
              "' only dense CPU tensors can be pinned");
  c10::require_device_hooks(accelerator(device));
  Tensor out =
      at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, true, MemoryFormat::Preserve);
  out.copy_(self);
  out.unsafeGetTensorImpl()->set_version(0);
  return out;
}

} // namespace at::native
