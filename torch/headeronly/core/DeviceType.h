// Kinds of devices for code that links with no part of this library.
#pragma once
#include <c10/core/Device.h>

namespace torch::headeronly {
using c10::DeviceType;
constexpr DeviceType kCPU = c10::kCPU, kCUDA = c10::kCUDA, kPrivateUse1 = c10::kPrivateUse1;
} // namespace torch::headeronly
