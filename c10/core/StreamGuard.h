// Makes a stream, and its device, current while the guard lives.
#pragma once
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10 {

class StreamGuard {
 public:
  explicit StreamGuard(Stream stream)
      : impl_(impl::getDeviceGuardImpl(stream.device_type())),
        device_before_(impl_->exchangeDevice(stream.device())),
        stream_before_(impl_->exchangeStream(stream)), current_(stream) {}
  ~StreamGuard() {
    impl_->exchangeStream(stream_before_);
    impl_->uncheckedSetDevice(device_before_);
  }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;
  Stream original_stream() const { return stream_before_; }
  Stream current_stream() const { return current_; }
  Device original_device() const { return device_before_; }
  Device current_device() const { return current_.device(); }

 private:
  const impl::DeviceGuardImplInterface* impl_;
  Device device_before_;
  Stream stream_before_;
  Stream current_;
};

} // namespace c10
