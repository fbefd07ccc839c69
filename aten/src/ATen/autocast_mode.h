// What autocast kernels of other packages call: the casts, and the dtype of a device's region. The
// functions are those of torch/csrc/autocast, which lies above this folder.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::autocast {

TORCH_API ScalarType dtype(DeviceType device);
TORCH_API Tensor cast_argument(const Tensor& tensor, DeviceType device, ScalarType wanted);

inline Tensor cached_cast(ScalarType wanted, const Tensor& tensor,
                          DeviceType device = DeviceType::CUDA) {
  return cast_argument(tensor, device, wanted);
}
inline ScalarType get_autocast_dtype(DeviceType device) { return dtype(device); }

} // namespace at::autocast
