// What backends call before they use a device. Devices of other packages are ready when the package
// is loaded, so nothing is left to be done.
#pragma once
#include <c10/core/Device.h>

namespace torch::utils {
inline void device_lazy_init(c10::DeviceType) {}
} // namespace torch::utils
