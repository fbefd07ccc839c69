// Scopes that choose a device or a stream and put the former one back.
#pragma once
#include <optional>
#include <vector>

#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

// Works on a device: makes it current and its context bound (Note [Current device and bound
// context]).
class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex device) : original_(detail::tls_state.current) {
    bind_device(device);
  }
  explicit CUDAGuard(Device device) : CUDAGuard(with_index(device).index()) {}
  ~CUDAGuard() {
    if (C10_UNLIKELY(detail::tls_state.current != original_)) restore();
  }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;

  void set_index(DeviceIndex device) { bind_device(device); }
  void set_device(Device device) { bind_device(with_index(device).index()); }
  void reset_device(Device device) { set_device(device); }
  Device original_device() const { return Device(DeviceType::CUDA, original_); }
  Device current_device() const { return Device(DeviceType::CUDA, detail::tls_state.current); }

 private:
  C10_API void restore() noexcept;
  DeviceIndex original_;
};

// A CUDAGuard that may hold no device yet: a function whose tensor may be elsewhere has one.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(DeviceIndex device) { set_index(device); }
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device && device->is_cuda()) set_device(*device);
  }
  void set_index(DeviceIndex device) {
    if (guard_)
      guard_->set_index(device);
    else
      guard_.emplace(device);
  }
  void set_device(Device device) { set_index(with_index(device).index()); }
  void reset_device(Device device) { set_device(device); }
  void reset() { guard_.reset(); }
  std::optional<Device> original_device() const {
    return guard_ ? std::optional<Device>(guard_->original_device()) : std::nullopt;
  }
  std::optional<Device> current_device() const {
    return guard_ ? std::optional<Device>(guard_->current_device()) : std::nullopt;
  }

 private:
  std::optional<CUDAGuard> guard_;
};

// Works on a stream and its device.
class C10_API CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream);
  ~CUDAStreamGuard();
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  explicit CUDAStreamGuard(Stream stream) : CUDAStreamGuard(CUDAStream(stream)) {}
  CUDAStream original_stream() const { return before_; }
  CUDAStream current_stream() const { return getCurrentCUDAStream(); }
  Device original_device() const { return guard_.original_device(); }
  Device current_device() const { return guard_.current_device(); }

 private:
  CUDAGuard guard_;
  CUDAStream before_;
};

// A CUDAStreamGuard that may hold no stream yet.
class OptionalCUDAStreamGuard {
 public:
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(Stream stream) { guard_.emplace(stream); }
  explicit OptionalCUDAStreamGuard(std::optional<Stream> stream) {
    if (stream) guard_.emplace(*stream);
  }
  void reset_stream(Stream stream) {
    guard_.reset();
    guard_.emplace(stream);
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAStreamGuard> guard_;
};

// Makes one stream current on each of several devices; the current device stays.
class CUDAMultiStreamGuard {
 public:
  explicit CUDAMultiStreamGuard(const std::vector<CUDAStream>& streams) {
    for (const CUDAStream& stream : streams) {
      before_.push_back(getCurrentCUDAStream(stream.device_index()));
      setCurrentCUDAStream(stream);
    }
  }
  ~CUDAMultiStreamGuard() {
    for (const CUDAStream& stream : before_) setCurrentCUDAStream(stream);
  }
  CUDAMultiStreamGuard(const CUDAMultiStreamGuard&) = delete;
  CUDAMultiStreamGuard& operator=(const CUDAMultiStreamGuard&) = delete;

 private:
  std::vector<CUDAStream> before_;
};

} // namespace c10::cuda

#ifndef CRESSET_KERNEL_TU
namespace at::cuda {
using namespace c10::cuda; // NOLINT: at::cuda offers programs what c10::cuda has
} // namespace at::cuda
#endif
