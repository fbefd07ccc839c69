// A mark in the work of a stream, on devices of any kind that has a guard. Made on the device when
// it is first recorded; a moved-from event is one that was never recorded.
#pragma once
#include <utility>

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10 {

struct Event final {
  explicit Event(DeviceType type, EventFlag flag = EventFlag::PYTORCH_DEFAULT)
      : impl_(impl::getDeviceGuardImpl(type)), flag_(flag) {}
  Event(Event&& o) noexcept
      : impl_(o.impl_), flag_(o.flag_), event_(std::exchange(o.event_, nullptr)),
        device_(std::exchange(o.device_, DeviceIndex(-1))) {}
  Event& operator=(Event&& o) noexcept {
    std::swap(impl_, o.impl_);
    std::swap(flag_, o.flag_);
    std::swap(event_, o.event_);
    std::swap(device_, o.device_);
    return *this;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) impl_->destroyEvent(event_, device_);
  }

  Device device() const noexcept { return Device(impl_->type(), device_); }
  DeviceType device_type() const noexcept { return impl_->type(); }
  DeviceIndex device_index() const noexcept { return device_; }
  EventFlag flag() const noexcept { return flag_; }
  bool was_marked_for_recording() const noexcept { return event_ != nullptr; }
  void* eventId() const noexcept { return event_; }

  void record(const Stream& stream) {
    TORCH_CHECK(stream.device_type() == impl_->type(), "Event device type ", impl_->type(),
                " does not match recording stream's device type ", stream.device_type(), ".");
    impl_->record(&event_, stream, device_, flag_);
    device_ = stream.device_index();
  }
  void recordOnce(const Stream& stream) {
    if (!was_marked_for_recording()) record(stream);
  }
  void block(const Stream& stream) const {
    if (event_ != nullptr) impl_->block(event_, stream);
  }
  bool query() const { return event_ == nullptr || impl_->queryEvent(event_); }
  void synchronize() const {
    if (event_ != nullptr) impl_->synchronizeEvent(event_);
  }
  // Milliseconds from this event to `end`.
  double elapsedTime(const Event& end) const {
    TORCH_CHECK(event_ != nullptr && end.event_ != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    TORCH_CHECK(end.impl_->type() == impl_->type(), "Event device types do not match");
    return impl_->elapsedTime(event_, end.event_, device_);
  }

 private:
  const impl::DeviceGuardImplInterface* impl_;
  EventFlag flag_;
  void* event_ = nullptr;
  DeviceIndex device_ = -1;
};

} // namespace c10
