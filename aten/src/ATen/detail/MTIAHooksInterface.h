// Hooks of MTIA devices, which another package brings: it derives from the interface, registers the
// class by REGISTER_MTIA_HOOKS and a guard by C10_REGISTER_GUARD_IMPL. Where both are there, the
// hooks say which device and which stream are current, the guard does the rest.
#pragma once
#include <ATen/detail/AcceleratorHooksInterface.h>
#include <c10/core/Stream.h>
#include <c10/util/Registry.h>

namespace at {

constexpr c10::DeviceType kMTIA = c10::DeviceType::MTIA;

struct MTIAHooksArgs {};

struct TORCH_API MTIAHooksInterface : AcceleratorHooksInterface {
  ~MTIAHooksInterface() override;
  virtual bool hasMTIA() const { return false; }
  bool isBuilt() const override { return hasMTIA(); }
  virtual void deviceSynchronize(c10::DeviceIndex device) const;
  virtual std::string showConfig() const;
  virtual c10::Stream getCurrentStream(c10::DeviceIndex device) const;
  virtual c10::Stream getDefaultStream(c10::DeviceIndex device) const;
  virtual void setCurrentStream(const c10::Stream& stream) const;
};

TORCH_API ::c10::Registry<std::string, std::unique_ptr<MTIAHooksInterface>, MTIAHooksArgs>*
MTIAHooksRegistry();

// Enters a class into the registry and uses an object of it from then on. Where there is one
// already the library that holds the class fails to load.
struct TORCH_API RegistererMTIAHooksRegistry {
  using Maker = std::unique_ptr<MTIAHooksInterface> (*)(MTIAHooksArgs);
  RegistererMTIAHooksRegistry(const char* name, Maker make);
  template <class Derived> static std::unique_ptr<MTIAHooksInterface> make(MTIAHooksArgs args) {
    return std::make_unique<Derived>(args);
  }
};

namespace detail {
// The registered hooks, or some that say that there are none.
TORCH_API const MTIAHooksInterface& getMTIAHooks();
inline bool isMTIAHooksBuilt() { return getMTIAHooks().isBuilt(); }
} // namespace detail

} // namespace at

#define REGISTER_MTIA_HOOKS(Class)                                                                 \
  static const ::at::RegistererMTIAHooksRegistry C10_CONCATENATE(cresset_hooks_, __LINE__)(        \
      #Class, &::at::RegistererMTIAHooksRegistry::make<Class>)
