// What a backend of another package offers besides its guard (DeviceGuardImplInterface.h): page-
// locked memory, generators, contexts. Every function has a default, so that a backend defines
// what it has; most defaults say by an error that the backend does not offer it.
#pragma once
#include <c10/core/AllocatorUser.h>
#include <c10/core/Generator.h>
#include <c10/core/Storage.h>

namespace at {

struct C10_API AcceleratorHooksInterface {
  virtual ~AcceleratorHooksInterface();
  virtual void init() const {}
  virtual bool isBuilt() const { return false; }
  virtual bool isAvailable() const { return deviceCount() > 0; }
  virtual bool hasPrimaryContext(c10::DeviceIndex device) const;
  virtual c10::DeviceIndex deviceCount() const { return 0; }
  virtual void setCurrentDevice(c10::DeviceIndex device) const;
  virtual c10::DeviceIndex getCurrentDevice() const;
  virtual c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const;
  virtual c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const;
  virtual bool isPinnedPtr(const void* data) const;
  virtual c10::Allocator* getPinnedMemoryAllocator() const;
  virtual c10::Device getDeviceFromPtr(void* data) const;
  virtual const c10::Generator& getDefaultGenerator(c10::DeviceIndex device = -1) const;
  virtual c10::Generator getNewGenerator(c10::DeviceIndex device = -1) const;
  virtual void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const;
};

} // namespace at

namespace c10::impl {

// The hooks of a device kind; null where none were set. `hooks` live to the end of the process.
C10_API const at::AcceleratorHooksInterface* accelerator_hooks(DeviceType type) noexcept;
// Error when the kind has some already.
C10_API void set_accelerator_hooks(DeviceType type, const at::AcceleratorHooksInterface* hooks);

// How generators of a kind are made, for backends that register only that. Error when the kind has
// one already.
using GeneratorMaker = Generator (*)(DeviceIndex);
C10_API GeneratorMaker generator_maker(DeviceType type) noexcept;
C10_API void set_generator_maker(DeviceType type, GeneratorMaker maker);

} // namespace c10::impl
