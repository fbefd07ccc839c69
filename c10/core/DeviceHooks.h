// What the parts of the library that know no device library ask of a device kind other than the
// CPU: memory, the current device and stream, order between streams, generators. A backend
// registers one object; without it the kind cannot be used. Streams appear here as plain pointers,
// null being the default stream of a device.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/Generator.h>

namespace c10 {

class C10_API DeviceHooks {
 public:
  virtual ~DeviceHooks();

  // How many devices can be used; zero where there is no driver.
  virtual int device_count() noexcept = 0;
  // `device` with an index that exists, the current one's where it has none. Throws where the kind
  // cannot be used.
  virtual Device resolve(Device device) = 0;
  virtual DeviceIndex current_device() noexcept = 0;
  // Returns the device that was current before.
  virtual DeviceIndex exchange_device(DeviceIndex device) = 0;

  // ---- memory
  virtual DataPtr allocate(size_t bytes, Device device) = 0;
  // Copies between devices of this kind and the CPU. The host waits unless both ends are devices.
  virtual void copy_bytes(void* dst, Device dst_device, const void* src, Device src_device,
                          size_t bytes) = 0;
  // Page-locked host memory.
  virtual Allocator* pinned_allocator() = 0;
  virtual bool is_pinned(const void* address) = 0;
  // `data` is also used on that stream.
  virtual void record_stream(const DataPtr& data, DeviceIndex device, void* stream) = 0;

  // ---- streams
  virtual void* current_stream(DeviceIndex device) = 0;
  virtual void set_current_stream(DeviceIndex device, void* stream) = 0;
  // Work queued on the first from now on starts after what is queued on the second so far.
  virtual void wait_stream(DeviceIndex waiting_device, void* waiting, DeviceIndex device,
                           void* producing) = 0;

  // ---- random numbers
  virtual Generator default_generator(DeviceIndex device) = 0;
  virtual Generator new_generator(DeviceIndex device) = 0;
  // Seeds the default generators of all devices, also of those not used yet. Loads nothing.
  virtual void seed_all(uint64_t seed) = 0;

  // ---- graphs
  // Whether this thread records work into a graph instead of running it.
  virtual bool is_recording() noexcept = 0;
};

C10_API void register_device_hooks(DeviceType type, DeviceHooks* hooks);
// Null where the kind has none.
C10_API DeviceHooks* device_hooks(DeviceType type) noexcept;
// Throws Error where the kind has none.
C10_API DeviceHooks& require_device_hooks(DeviceType type);

// The device of a new tensor: indexed, and known to exist. The CPU and meta stay as they are.
C10_API Device usable_device(Device device);

// Works on a device; nothing for the CPU.
class C10_API DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  DeviceHooks* hooks_ = nullptr;
  DeviceIndex before_ = -1;
};

} // namespace c10
