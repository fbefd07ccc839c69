// A tensor as it is when the call begins: kernels read sizes and strides again after work that lets
// other threads run, and a transposition by one of those would let them read outside of the memory
// (Note [Tensors that change under a kernel] in c10/core/Retired.h). Generated wrappers of CPU
// kernels pass one for every argument that is only read where an argument may change: where Python
// knows it and it is large enough for a kernel to let go of the interpreter's lock.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace at::native {

// Shares the memory. Undefined for an undefined tensor.
TORCH_API Tensor snapshot(const Tensor& t);
TORCH_API std::optional<Tensor> snapshot(const std::optional<Tensor>& t);

inline bool may_change(const Tensor& t) {
  constexpr int64_t kLarge = 512;
  const TensorImpl* impl = t.unsafeGetTensorImpl();
  return t.defined() && impl->numel() >= kLarge && impl->pyobj != nullptr;
}
inline bool may_change(const std::optional<Tensor>& t) { return t && may_change(*t); }
template <class T, class... Rest> inline bool may_change(const T& first, const Rest&... rest) {
  return may_change(first) || may_change(rest...);
}

} // namespace at::native
