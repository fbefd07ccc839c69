// What a backend of another package implements so that this library can work on its devices: which
// device and stream are current, events, how many devices there are. C10_REGISTER_GUARD_IMPL puts
// one object per device kind into a table; from then on c10::DeviceHooks of that kind calls it,
// which is what tensors, autograd and Python ask.
#pragma once
#include <c10/core/AllocatorUser.h>
#include <c10/core/Stream.h>

namespace c10 {

// How an event is made: PYTORCH_DEFAULT without times, BACKEND_DEFAULT with them.
enum class EventFlag { PYTORCH_DEFAULT, BACKEND_DEFAULT, INVALID };

namespace impl {

struct C10_API DeviceGuardImplInterface {
  DeviceGuardImplInterface() = default;
  DeviceGuardImplInterface(const DeviceGuardImplInterface&) = default;
  DeviceGuardImplInterface& operator=(const DeviceGuardImplInterface&) = default;
  virtual ~DeviceGuardImplInterface();

  virtual DeviceType type() const = 0;
  // Makes a device current and returns the one before.
  virtual Device exchangeDevice(Device device) const = 0;
  virtual Device getDevice() const = 0;
  virtual void setDevice(Device device) const = 0;
  // For destructors: errors are not reported.
  virtual void uncheckedSetDevice(Device device) const noexcept = 0;
  // Zero where the driver does not work; never throws.
  virtual DeviceIndex deviceCount() const noexcept = 0;

  // ---- streams: a backend without them has the default stream of each device
  virtual Stream getStream(Device device) const = 0;
  virtual Stream getDefaultStream(Device device) const;
  virtual Stream getStreamFromGlobalPool(Device device, bool high_priority = false) const;
  virtual Stream getNewStream(Device device, int priority = 0) const;
  // Makes a stream current on its device and returns the one before. The current device stays.
  virtual Stream exchangeStream(Stream stream) const = 0;
  virtual bool queryStream(const Stream& stream) const;
  virtual void synchronizeStream(const Stream& stream) const;
  virtual void synchronizeDevice(DeviceIndex device) const;
  virtual void recordDataPtrOnStream(const DataPtr& data, const Stream& stream) const;

  // ---- events: null until first recorded
  virtual void destroyEvent(void* event, DeviceIndex device) const noexcept;
  virtual void record(void** event, const Stream& stream, DeviceIndex device, EventFlag flag) const;
  virtual void block(void* event, const Stream& stream) const;
  virtual bool queryEvent(void* event) const;
  virtual void synchronizeEvent(void* event) const;
  // Milliseconds between two events.
  virtual double elapsedTime(void* first, void* second, DeviceIndex device) const;
};

// A guard for devices of which there is only one, without streams.
template <DeviceType kType> struct NoOpDeviceGuardImpl final : DeviceGuardImplInterface {
  NoOpDeviceGuardImpl() = default;
  DeviceType type() const override { return kType; }
  Device exchangeDevice(Device) const override { return Device(kType, -1); }
  Device getDevice() const override { return Device(kType, -1); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  DeviceIndex deviceCount() const noexcept override { return 1; }
  Stream getStream(Device) const noexcept override {
    return Stream(Stream::DEFAULT, Device(kType, -1));
  }
  Stream getNewStream(Device, int) const override {
    return Stream(Stream::DEFAULT, Device(kType, -1));
  }
  Stream exchangeStream(Stream) const noexcept override {
    return Stream(Stream::DEFAULT, Device(kType, -1));
  }
};

// Null where the kind has none.
C10_API const DeviceGuardImplInterface* find_guard_impl(DeviceType type) noexcept;
// Error where the kind has none.
C10_API const DeviceGuardImplInterface* getDeviceGuardImpl(DeviceType type);
inline bool hasDeviceGuardImpl(DeviceType type) { return find_guard_impl(type) != nullptr; }

// What is used in the place of a kind's guard, registered before or later; both live to the end of
// the process.
using GuardAdapter = const DeviceGuardImplInterface* (*)(const DeviceGuardImplInterface& guard);
C10_API void set_guard_adapter(DeviceType type, GuardAdapter adapter);

class C10_API DeviceGuardImplRegistrar {
 public:
  // `impl` lives to the end of the process.
  DeviceGuardImplRegistrar(DeviceType type, const DeviceGuardImplInterface* impl);
};

} // namespace impl
} // namespace c10

#define C10_REGISTER_GUARD_IMPL(kind, Impl)                                                        \
  static const ::c10::impl::DeviceGuardImplRegistrar C10_CONCATENATE(cresset_guard_, __LINE__)(    \
      ::c10::DeviceType::kind, new Impl())
