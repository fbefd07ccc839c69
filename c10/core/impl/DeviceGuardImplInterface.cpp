// The table of guards, what a backend does that has no streams or events, and the adapter through
// which the rest of the library sees a guard: c10::DeviceHooks.
#undef CRESSET_KERNEL_TU
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>

#include <c10/core/DeviceHooks.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/AcceleratorHooks.h>

namespace c10 {
namespace impl {
namespace {

std::atomic<const DeviceGuardImplInterface*> g_guards[kNumDeviceTypes] = {};
std::atomic<GuardAdapter> g_adapters[kNumDeviceTypes] = {};

[[noreturn]] void not_offered(const DeviceGuardImplInterface& impl, const char* what) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Backend ", impl.type(), " doesn't support ", what);
}

// A stream as DeviceHooks passes it: its number in the place of an address.
void* as_pointer(const Stream& stream) { return reinterpret_cast<void*>(stream.id()); }
Stream as_stream(DeviceType type, DeviceIndex device, void* stream) {
  return Stream(Stream::UNSAFE, Device(type, device), reinterpret_cast<StreamId>(stream));
}

class GuardHooks final : public DeviceHooks {
 public:
  explicit GuardHooks(const DeviceGuardImplInterface& impl) : impl_(impl), type_(impl.type()) {}

  int device_count() noexcept override { return impl_.deviceCount(); }
  Device resolve(Device device) override {
    const int count = impl_.deviceCount();
    TORCH_CHECK(count > 0, "no device of type ", type_, " can be used");
    const DeviceIndex index = device.has_index() ? device.index() : current_device();
    TORCH_CHECK(index < count, "invalid device ", device, ": there are ", count,
                " devices of type ", type_);
    return Device(type_, index);
  }
  // A guard for a kind of which there is only one device has no index for it.
  DeviceIndex current_device() noexcept override {
    const DeviceIndex index = impl_.getDevice().index();
    return index < 0 ? DeviceIndex(0) : index;
  }
  DeviceIndex exchange_device(DeviceIndex device) override {
    const DeviceIndex before = impl_.exchangeDevice(Device(type_, device)).index();
    return before < 0 ? DeviceIndex(0) : before;
  }

  DataPtr allocate(size_t bytes, Device device) override {
    const DeviceGuard guard(device);
    return GetAllocator(type_)->allocate(bytes);
  }
  void copy_bytes(void* dst, Device, const void* src, Device, size_t bytes) override {
    GetAllocator(type_)->copy_data(dst, src, bytes);
  }
  Allocator* pinned_allocator() override { return hooks().getPinnedMemoryAllocator(); }
  bool is_pinned(const void* address) override {
    const at::AcceleratorHooksInterface* own = accelerator_hooks(type_);
    return own != nullptr && own->isPinnedPtr(address);
  }
  void record_stream(const DataPtr& data, DeviceIndex device, void* stream) override {
    impl_.recordDataPtrOnStream(data, as_stream(type_, device, stream));
  }

  void* current_stream(DeviceIndex device) override {
    return as_pointer(impl_.getStream(Device(type_, device)));
  }
  void set_current_stream(DeviceIndex device, void* stream) override {
    impl_.exchangeStream(as_stream(type_, device, stream));
  }
  void wait_stream(DeviceIndex waiting_device, void* waiting, DeviceIndex device,
                   void* producing) override {
    if (waiting_device == device && waiting == producing) return;
    void* event = nullptr;
    impl_.record(&event, as_stream(type_, device, producing), device, EventFlag::PYTORCH_DEFAULT);
    impl_.block(event, as_stream(type_, waiting_device, waiting));
    impl_.destroyEvent(event, device);
  }

  Generator default_generator(DeviceIndex device) override {
    return hooks().getDefaultGenerator(device < 0 ? current_device() : device);
  }
  Generator new_generator(DeviceIndex device) override {
    if (const GeneratorMaker make = generator_maker(type_))
      return make(device < 0 ? current_device() : device);
    const at::AcceleratorHooksInterface* own = accelerator_hooks(type_);
    TORCH_CHECK(own != nullptr, "Please register a generator to the ", key_name(),
                " dispatch key, using the REGISTER_GENERATOR_PRIVATEUSE1 macro.");
    return own->getNewGenerator(device);
  }
  void seed_all(uint64_t seed) override {
    const at::AcceleratorHooksInterface* own = accelerator_hooks(type_);
    for (DeviceIndex i = 0; own != nullptr && i < impl_.deviceCount(); ++i) {
      try {
        own->getDefaultGenerator(i)->set_current_seed(seed);
      } catch (const NotImplementedError&) {
        return; // a backend without generators has nothing to seed
      }
    }
  }
  bool is_recording() noexcept override { return false; }

 private:
  const char* key_name() const { return toString(backend_key(type_)); }
  const at::AcceleratorHooksInterface& hooks() const {
    const at::AcceleratorHooksInterface* own = accelerator_hooks(type_);
    TORCH_CHECK(own != nullptr, "Please register ", key_name(), "HooksInterface by `Register",
                key_name(), "HooksInterface` first.");
    return *own;
  }
  const DeviceGuardImplInterface& impl_;
  DeviceType type_;
};

} // namespace

DeviceGuardImplInterface::~DeviceGuardImplInterface() = default;

Stream DeviceGuardImplInterface::getDefaultStream(Device) const {
  not_offered(*this, "acquiring a default stream.");
}
Stream DeviceGuardImplInterface::getStreamFromGlobalPool(Device, bool) const {
  not_offered(*this, "acquiring a stream from pool.");
}
Stream DeviceGuardImplInterface::getNewStream(Device, int) const {
  not_offered(*this, "create a new Stream.");
}
bool DeviceGuardImplInterface::queryStream(const Stream&) const {
  not_offered(*this, "querying streams.");
}
void DeviceGuardImplInterface::synchronizeStream(const Stream&) const {
  not_offered(*this, "synchronizing streams.");
}
void DeviceGuardImplInterface::synchronizeDevice(DeviceIndex) const {
  not_offered(*this, "synchronizing all streams on the device.");
}
void DeviceGuardImplInterface::recordDataPtrOnStream(const DataPtr&, const Stream&) const {}
void DeviceGuardImplInterface::destroyEvent(void*, DeviceIndex) const noexcept {}
void DeviceGuardImplInterface::record(void**, const Stream&, DeviceIndex, EventFlag) const {
  not_offered(*this, "events.");
}
void DeviceGuardImplInterface::block(void*, const Stream&) const { not_offered(*this, "events."); }
bool DeviceGuardImplInterface::queryEvent(void*) const { not_offered(*this, "events."); }
void DeviceGuardImplInterface::synchronizeEvent(void*) const {
  not_offered(*this, "synchronizing events.");
}
double DeviceGuardImplInterface::elapsedTime(void*, void*, DeviceIndex) const {
  not_offered(*this, "elapsedTime.");
}

const DeviceGuardImplInterface* find_guard_impl(DeviceType type) noexcept {
  const int index = static_cast<int>(type);
  return index >= 0 && index < kNumDeviceTypes ? g_guards[index].load(std::memory_order_acquire)
                                               : nullptr;
}

const DeviceGuardImplInterface* getDeviceGuardImpl(DeviceType type) {
  const DeviceGuardImplInterface* impl = find_guard_impl(type);
  TORCH_CHECK(impl != nullptr, "PyTorch is not linked with support for ", type, " devices");
  return impl;
}

void set_guard_adapter(DeviceType type, GuardAdapter adapter) {
  g_adapters[static_cast<int>(type)] = adapter;
  const DeviceGuardImplInterface* const impl = find_guard_impl(type);
  if (impl != nullptr) DeviceGuardImplRegistrar(type, impl);
}

DeviceGuardImplRegistrar::DeviceGuardImplRegistrar(DeviceType type,
                                                   const DeviceGuardImplInterface* impl) {
  if (const GuardAdapter adapter = g_adapters[static_cast<int>(type)]) impl = adapter(*impl);
  g_guards[static_cast<int>(type)].store(impl, std::memory_order_release);
  register_device_hooks(type, new GuardHooks(*impl));
}

} // namespace impl

bool Stream::query() const { return impl::getDeviceGuardImpl(device_.type())->queryStream(*this); }
void Stream::synchronize() const {
  impl::getDeviceGuardImpl(device_.type())->synchronizeStream(*this);
}

} // namespace c10
