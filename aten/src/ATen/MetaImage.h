// The images of tensors on the meta device, for the functions of at::meta (ATen/MetaFunctions.h).
#pragma once
#include <utility>
#include <vector>

#include <ATen/ops/empty_strided.h>

namespace at::meta::detail {

template <class T> T&& image(T&& other) { return std::forward<T>(other); }
// Its size, strides and dtype, without memory. A number that became a tensor stays one.
inline Tensor image(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  Tensor out =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(Device(kMeta)));
  out.unsafeGetTensorImpl()->set_wrapped_number(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  return out;
}
inline Tensor image(Tensor& tensor) { return image(std::as_const(tensor)); }
inline Tensor image(Tensor&& tensor) { return image(std::as_const(tensor)); }
inline std::optional<Tensor> image(const std::optional<Tensor>& tensor) {
  if (!tensor) return std::nullopt;
  return image(*tensor);
}
inline std::vector<Tensor> image(const std::vector<Tensor>& all) {
  std::vector<Tensor> out;
  for (const Tensor& each : all) out.push_back(image(each));
  return out;
}

} // namespace at::meta::detail

#define CRESSET_META_FUNCTION(name)                                                                \
  template <class... Args>                                                                         \
  auto name(Args&&... args)->decltype(at::name(detail::image(std::forward<Args>(args))...)) {      \
    return at::name(detail::image(std::forward<Args>(args))...);                                   \
  }
