// Hooks of the device kind that is left to other packages. A backend derives from the interface
// and registers one object, once.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/detail/AcceleratorHooksInterface.h>
#include <c10/util/Registry.h>

namespace at {

struct PrivateUse1HooksArgs {};
struct PrivateUse1HooksInterface : AcceleratorHooksInterface {
  ~PrivateUse1HooksInterface() override = default;
};

inline void RegisterPrivateUse1HooksInterface(PrivateUse1HooksInterface* hooks) {
  c10::impl::set_accelerator_hooks(DeviceType::PrivateUse1, hooks);
}
inline bool isPrivateUse1HooksRegistered() {
  return c10::impl::accelerator_hooks(DeviceType::PrivateUse1) != nullptr;
}

namespace detail {
inline const PrivateUse1HooksInterface& getPrivateUse1Hooks() {
  const AcceleratorHooksInterface* hooks = c10::impl::accelerator_hooks(DeviceType::PrivateUse1);
  TORCH_CHECK(hooks != nullptr, "Please register PrivateUse1HooksInterface by "
                                "`RegisterPrivateUse1HooksInterface` first.");
  return static_cast<const PrivateUse1HooksInterface&>(*hooks);
}
} // namespace detail
} // namespace at
