// Page-locked host memory as seen from tensors. Which device's driver locks the pages is the device
// hooks' affair.
#include <ATen/core/Tensor.h>
#include <ATen/native/copy/Native.h>
#include <ATen/ops/_pin_memory.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceHooks.h>

namespace at::native {
namespace {

// Without a device the one of another package where there is one, else CUDA.
DeviceType accelerator(const std::optional<Device>& device) {
  if (device) return device->type();
  return c10::device_hooks(c10::kPrivateUse1) != nullptr ? c10::kPrivateUse1 : kCUDA;
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
  c10::Allocator* allocator = c10::require_device_hooks(accelerator(device)).pinned_allocator();
  Tensor out = at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                              MemoryFormat::Preserve);
  const size_t bytes = out.storage()->nbytes();
  out.unsafeGetTensorImpl()->set_storage(
      c10::make_intrusive<c10::StorageImpl>(bytes, allocator->allocate(bytes), allocator, true));
  out.copy_(self);
  out.unsafeGetTensorImpl()->set_version(0);
  return out;
}

} // namespace at::native
