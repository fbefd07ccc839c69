// A queue of work on a device, as code that knows no device library names it: the device and a
// number that only its backend understands. Zero is the default stream of every device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include <c10/core/Device.h>

namespace c10 {

using StreamId = int64_t;

struct StreamData3 {
  StreamId stream_id;
  DeviceIndex device_index;
  DeviceType device_type;
};

class C10_API Stream final {
 public:
  enum Unsafe { UNSAFE };
  enum Default { DEFAULT };
  // The caller knows that the backend gave this number out.
  Stream(Unsafe, Device device, StreamId id) : device_(device), id_(id) {}
  Stream(Default, Device device) : device_(device), id_(0) {}

  Device device() const noexcept { return device_; }
  DeviceType device_type() const noexcept { return device_.type(); }
  DeviceIndex device_index() const noexcept { return device_.index(); }
  StreamId id() const noexcept { return id_; }
  bool operator==(const Stream& o) const noexcept { return device_ == o.device_ && id_ == o.id_; }
  bool operator!=(const Stream& o) const noexcept { return !(*this == o); }

  // Work queued from now on starts after `event` (any class with block(Stream)).
  template <class Event> void wait(const Event& event) const { event.block(*this); }
  // Whether all that was queued has run.
  bool query() const;
  // Waits until it has.
  void synchronize() const;

  StreamData3 pack3() const { return {id_, device_.index(), device_.type()}; }
  static Stream unpack3(StreamId id, DeviceIndex index, DeviceType type) {
    return Stream(UNSAFE, Device(type, index), id);
  }

 private:
  Device device_;
  StreamId id_;
};

} // namespace c10

namespace at {
using c10::Stream;
} // namespace at

template <> struct std::hash<c10::Stream> {
  size_t operator()(const c10::Stream& s) const noexcept {
    const auto place = static_cast<size_t>(static_cast<uint8_t>(s.device_index()));
    const auto kind = static_cast<size_t>(static_cast<uint8_t>(s.device_type()));
    return (static_cast<size_t>(s.id()) * 31 + kind) * 131 + place;
  }
};
