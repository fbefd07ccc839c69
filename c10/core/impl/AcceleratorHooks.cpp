// The table of what backends of other packages offer, and their defaults. See AcceleratorHooks.h.
#undef CRESSET_KERNEL_TU
#include <c10/core/impl/AcceleratorHooks.h>

#include <atomic>

#include <c10/core/DispatchKeySet.h>

namespace at {
namespace {
[[noreturn]] void not_offered(const char* what) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "the backend of this device does not implement ", what);
}
} // namespace

AcceleratorHooksInterface::~AcceleratorHooksInterface() = default;
bool AcceleratorHooksInterface::hasPrimaryContext(c10::DeviceIndex) const {
  not_offered("hasPrimaryContext");
}
void AcceleratorHooksInterface::setCurrentDevice(c10::DeviceIndex) const {
  not_offered("setCurrentDevice");
}
c10::DeviceIndex AcceleratorHooksInterface::getCurrentDevice() const {
  not_offered("getCurrentDevice");
}
c10::DeviceIndex AcceleratorHooksInterface::exchangeDevice(c10::DeviceIndex) const {
  not_offered("exchangeDevice");
}
c10::DeviceIndex AcceleratorHooksInterface::maybeExchangeDevice(c10::DeviceIndex) const {
  not_offered("maybeExchangeDevice");
}
bool AcceleratorHooksInterface::isPinnedPtr(const void*) const { return false; }
c10::Allocator* AcceleratorHooksInterface::getPinnedMemoryAllocator() const {
  not_offered("getPinnedMemoryAllocator");
}
c10::Device AcceleratorHooksInterface::getDeviceFromPtr(void*) const {
  not_offered("getDeviceFromPtr");
}
const c10::Generator& AcceleratorHooksInterface::getDefaultGenerator(c10::DeviceIndex) const {
  not_offered("getDefaultGenerator");
}
c10::Generator AcceleratorHooksInterface::getNewGenerator(c10::DeviceIndex) const {
  not_offered("getNewGenerator");
}
void AcceleratorHooksInterface::resizePrivateUse1Bytes(const c10::Storage&, size_t) const {
  not_offered("resizePrivateUse1Bytes");
}
} // namespace at

namespace c10::impl {
namespace {
std::atomic<const at::AcceleratorHooksInterface*> g_hooks[kNumDeviceTypes] = {};
std::atomic<GeneratorMaker> g_makers[kNumDeviceTypes] = {};

int checked_index(DeviceType type) {
  const int index = static_cast<int>(type);
  TORCH_CHECK(index >= 0 && index < kNumDeviceTypes, "no such device type: ", index);
  return index;
}
} // namespace

const at::AcceleratorHooksInterface* accelerator_hooks(DeviceType type) noexcept {
  const int index = static_cast<int>(type);
  return index >= 0 && index < kNumDeviceTypes ? g_hooks[index].load() : nullptr;
}

void set_accelerator_hooks(DeviceType type, const at::AcceleratorHooksInterface* hooks) {
  const at::AcceleratorHooksInterface* none = nullptr;
  TORCH_CHECK(g_hooks[checked_index(type)].compare_exchange_strong(none, hooks),
              toString(backend_key(type)), "HooksInterface only could be registered once.");
}

GeneratorMaker generator_maker(DeviceType type) noexcept {
  const int index = static_cast<int>(type);
  return index >= 0 && index < kNumDeviceTypes ? g_makers[index].load() : nullptr;
}

void set_generator_maker(DeviceType type, GeneratorMaker maker) {
  GeneratorMaker none = nullptr;
  TORCH_CHECK(g_makers[checked_index(type)].compare_exchange_strong(none, maker),
              "Only can register a generator to the ", toString(backend_key(type)),
              " dispatch key once!");
}

} // namespace c10::impl
