// Where kernels report values they cannot use: bad indices, divisors of zero. Each device has one
// slot in mapped host memory. A kernel that meets such a value claims the slot (atomicCAS of
// `claimed` from 0 to 1), fills it in and skips the element; later reports of the same batch are
// dropped. The next call that waits for the device finds the slot filled, empties it and raises the
// error the CPU raises at once: the context lives on, which it would not after a device-side
// assertion.
#pragma once
#include <c10/cuda/CUDADevice.h>
#include <c10/cuda/DeviceError.h>

namespace c10::cuda {

// The slot as kernels see it, to be passed as an argument. Binds nothing.
C10_API CUdeviceptr error_slot(DeviceIndex device);

namespace detail {
extern C10_API DeviceError* error_slots[kMaxDevices]; // null until first asked for
[[noreturn]] C10_API void raise_device_error(DeviceIndex device);
} // namespace detail

// To be called after waiting for the device: throws when the slot is filled.
inline void check_device_error(DeviceIndex device) {
  const volatile DeviceError* slot = detail::error_slots[device];
  if (C10_UNLIKELY(slot != nullptr && slot->claimed != 0)) detail::raise_device_error(device);
}

} // namespace c10::cuda
