// The slots in mapped host memory, one per device, made when a kernel first wants one.
#include <c10/cuda/ErrorSlot.h>

#include <mutex>

#include <c10/cuda/CUDAGuard.h>

namespace c10::cuda {

namespace detail {

DeviceError* error_slots[kMaxDevices] = {};

void raise_device_error(DeviceIndex device) {
  DeviceError& slot = *error_slots[device];
  const DeviceError found = slot;
  slot = DeviceError{};
  if (found.dim == kFaultZeroDivision)
    throw Error(str("ZeroDivisionError\n  in a division of integers on cuda:", int{device}));
  if (found.dim == kFaultNoProbability)
    throw Error(str("all elements of input should be between 0 and 1\n  in binary_cross_entropy "
                    "on cuda:",
                    int{device}));
  const std::string where =
      str("\n  in ", found.op != nullptr ? found.op : "a kernel", " on cuda:", int{device});
  if (found.dim >= 0) {
    throw IndexError(str("index ", found.value, " is out of bounds for dimension ", found.dim,
                         " with size ", found.bound, where));
  }
  throw IndexError(
      str("index ", found.value, " is out of range: expected 0 to ", found.bound - 1, where));
}

} // namespace detail

CUdeviceptr error_slot(DeviceIndex device) {
  static CUdeviceptr addresses[kMaxDevices] = {};
  static std::mutex mutex;
  if (C10_LIKELY(detail::error_slots[device] != nullptr)) return addresses[device];
  std::lock_guard<std::mutex> lock(mutex);
  if (detail::error_slots[device] != nullptr) return addresses[device];
  const CUDAGuard guard(device);
  void* memory = nullptr;
  CRESSET_CUDA_CHECK(cuMemHostAlloc, &memory, sizeof(DeviceError),
                     kHostAllocPortable | kHostAllocDeviceMap);
  CRESSET_CUDA_CHECK(cuMemHostGetDevicePointer, &addresses[device], memory, 0u);
  auto* slot = static_cast<DeviceError*>(memory);
  *slot = DeviceError{};
  __atomic_store_n(&detail::error_slots[device], slot, __ATOMIC_RELEASE);
  return addresses[device];
}

} // namespace c10::cuda
