// Copies whose fast dimension differs between source and destination.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {
// Copies src into dst (same sizes and dtype) by square tiles when one of them is contiguous along a
// dimension where the other is not, and the tensor is large enough for it to matter. False: not
// done.
bool try_transposed_copy(const Tensor& dst, const Tensor& src);
} // namespace at::native
