// See MTIAHooksInterface.h.
#undef CRESSET_KERNEL_TU // the interface for backends of other packages
#include <ATen/detail/MTIAHooksInterface.h>

#include <ATen/core/RegistrationFailures.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace at {

namespace {

using Guard = c10::impl::DeviceGuardImplInterface;

[[noreturn]] void no_hooks() {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Cannot use MTIA devices: no package registered hooks of them "
                                     "(REGISTER_MTIA_HOOKS)");
}

// The guard of the package; what is current is asked of its hooks.
struct HookedGuard final : Guard {
  HookedGuard(const Guard& guard, const MTIAHooksInterface& hooks) : guard(guard), hooks(hooks) {}

  c10::DeviceType type() const override { return kMTIA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return c10::Device(kMTIA, hooks.exchangeDevice(device.index()));
  }
  c10::Device getDevice() const override { return c10::Device(kMTIA, hooks.getCurrentDevice()); }
  void setDevice(c10::Device device) const override { hooks.setCurrentDevice(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    try {
      hooks.setCurrentDevice(device.index());
    } catch (const std::exception&) { // a destructor has nobody to tell
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override { return guard.deviceCount(); }

  c10::Stream getStream(c10::Device device) const override {
    return hooks.getCurrentStream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return hooks.getDefaultStream(device.index());
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = hooks.getCurrentStream(stream.device_index());
    hooks.setCurrentStream(stream);
    return before;
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    hooks.deviceSynchronize(device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return guard.getStreamFromGlobalPool(device, high_priority);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return guard.getNewStream(device, priority);
  }
  bool queryStream(const c10::Stream& stream) const override { return guard.queryStream(stream); }
  void synchronizeStream(const c10::Stream& stream) const override {
    guard.synchronizeStream(stream);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    guard.recordDataPtrOnStream(data, stream);
  }
  void destroyEvent(void* event, c10::DeviceIndex device) const noexcept override {
    guard.destroyEvent(event, device);
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex device,
              c10::EventFlag flag) const override {
    guard.record(event, stream, device, flag);
  }
  void block(void* event, const c10::Stream& stream) const override { guard.block(event, stream); }
  bool queryEvent(void* event) const override { return guard.queryEvent(event); }
  void synchronizeEvent(void* event) const override { guard.synchronizeEvent(event); }
  double elapsedTime(void* first, void* second, c10::DeviceIndex device) const override {
    return guard.elapsedTime(first, second, device);
  }

  const Guard& guard;
  const MTIAHooksInterface& hooks;
};

const MTIAHooksInterface* registered() {
  return static_cast<const MTIAHooksInterface*>(c10::impl::accelerator_hooks(kMTIA));
}

} // namespace

MTIAHooksInterface::~MTIAHooksInterface() = default;
void MTIAHooksInterface::deviceSynchronize(c10::DeviceIndex) const { no_hooks(); }
std::string MTIAHooksInterface::showConfig() const { no_hooks(); }
c10::Stream MTIAHooksInterface::getCurrentStream(c10::DeviceIndex) const { no_hooks(); }
c10::Stream MTIAHooksInterface::getDefaultStream(c10::DeviceIndex) const { no_hooks(); }
void MTIAHooksInterface::setCurrentStream(const c10::Stream&) const { no_hooks(); }

::c10::Registry<std::string, std::unique_ptr<MTIAHooksInterface>, MTIAHooksArgs>*
MTIAHooksRegistry() {
  static auto* const registry =
      new ::c10::Registry<std::string, std::unique_ptr<MTIAHooksInterface>, MTIAHooksArgs>();
  return registry;
}

RegistererMTIAHooksRegistry::RegistererMTIAHooksRegistry(const char* name, Maker make) {
  // This runs while a library is loaded, where an exception would end the process.
  try {
    MTIAHooksRegistry()->Register(name, make);
    // They live to the end of the process.
    c10::impl::set_accelerator_hooks(kMTIA, make(MTIAHooksArgs{}).release());
    c10::impl::set_guard_adapter(kMTIA, [](const Guard& guard) -> const Guard* {
      return new HookedGuard(guard, *registered());
    });
  } catch (const std::exception& error) {
    torch::detail::keep_registration_failure(
        this, "mtia", c10::str("REGISTER_MTIA_HOOKS(", name, ")"), error.what());
  }
}

const MTIAHooksInterface& detail::getMTIAHooks() {
  static const auto* const none = new MTIAHooksInterface;
  const MTIAHooksInterface* const own = registered();
  return own != nullptr ? *own : *none;
}

} // namespace at
