// Tensors without a value: made by the default constructor, moved from, or reset. Methods that are
// operators raise an error that names them instead of reading address zero. The inline accessors of
// the geometry (sizes, dtype, ...) do not check: kernels read them in every call.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::detail {

[[noreturn]] TORCH_API void throw_undefined(const char* method);
inline void check_defined(const Tensor& self, const char* method) {
  if (C10_UNLIKELY(!self.defined())) throw_undefined(method);
}

} // namespace at::detail
