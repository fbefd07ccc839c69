// Scopes that choose a device or a stream and put the former one back.
#pragma once
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
  DeviceIndex original_device() const { return original_; }

 private:
  C10_API void restore() noexcept;
  DeviceIndex original_;
};

// Works on a stream and its device.
class C10_API CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream);
  ~CUDAStreamGuard();
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  CUDAStream original_stream() const { return before_; }

 private:
  CUDAGuard guard_;
  CUDAStream before_;
};

} // namespace c10::cuda
