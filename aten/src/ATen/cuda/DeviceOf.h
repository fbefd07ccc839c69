// Which CUDA device a call runs on: that of its first CUDA tensor, else the device it was asked to
// make a tensor on, else the current one. The generated CUDA kernels put this around every call.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::cuda {
namespace detail {

inline int found(const Tensor& t) { return t.defined() && t.is_cuda() ? t.device().index() : -1; }
inline int found(const std::optional<Tensor>& t) { return t ? found(*t) : -1; }
inline int found(TensorList list) {
  for (const Tensor& t : list)
    if (const int index = found(t); index >= 0) return index;
  return -1;
}
inline int found(OptionalTensorList list) {
  for (const std::optional<Tensor>& t : list)
    if (const int index = found(t); index >= 0) return index;
  return -1;
}
inline int found(const std::optional<Device>& d) { return d && d->is_cuda() ? d->index() : -1; }
template <class T> inline int found(const T&) { return -1; }

} // namespace detail

template <class... Args> inline c10::DeviceIndex device_of(const Args&... args) {
  int index = -1;
  ((index = index >= 0 ? index : detail::found(args)), ...);
  return index >= 0 ? static_cast<c10::DeviceIndex>(index) : c10::cuda::current_device();
}

} // namespace at::cuda
