// The accelerator of this machine for extensions with a stable ABI: which device is current, guards
// that change it while they live, and the current stream of a device.
#pragma once
#include <memory>

#include <torch/csrc/stable/device_struct.h>
#include <torch/csrc/stable/error.h>

namespace torch::stable::accelerator {

using DeviceIndex = torch::stable::DeviceIndex;
using StreamId = int64_t;

class DeviceGuard {
 public:
  explicit DeviceGuard(DeviceIndex index) {
    DeviceGuardHandle handle = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_create_device_guard(index, &handle));
    handle_.reset(handle);
  }
  void set_index(DeviceIndex index) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_device_guard_set_index(handle_.get(), index));
  }

 private:
  struct Delete {
    void operator()(DeviceGuardHandle handle) const { aoti_torch_delete_device_guard(handle); }
  };
  std::unique_ptr<DeviceGuardOpaque, Delete> handle_;
};

class Stream {
 public:
  // Takes the handle over.
  explicit Stream(StreamHandle handle)
      : handle_(handle, [](StreamHandle owned) { aoti_torch_delete_stream(owned); }) {}
  StreamId id() const {
    StreamId out = 0;
    TORCH_ERROR_CODE_CHECK(aoti_torch_stream_id(handle_.get(), &out));
    return out;
  }

 private:
  std::shared_ptr<StreamOpaque> handle_;
};

inline Stream getCurrentStream(DeviceIndex index) {
  StreamHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_stream(index, &handle));
  return Stream(handle);
}
inline DeviceIndex getCurrentDeviceIndex() {
  int32_t index = -1;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_device_index(&index));
  return static_cast<DeviceIndex>(index);
}

} // namespace torch::stable::accelerator
