// Tensors without a value: made by the default constructor, moved from, or reset. Methods that are
// operators raise an error that names them, as the accessors of Tensor.h do.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::detail {

inline void check_defined(const Tensor& self, const char* method) {
  if (C10_UNLIKELY(!self.defined())) throw_undefined(method);
}

} // namespace at::detail
