// Copies that need no general walk over elements: one element seen everywhere (what the gradient of
// a sum is), and tensors whose innermost dimension is contiguous in both or short.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {
// Copies src into dst (same sizes and dtype, sharing no memory, dst without internal overlap) row
// by row when both have contiguous rows long enough for it to pay. False: not done.
bool try_row_copy(const Tensor& dst, const Tensor& src);
// The same for rows of few elements, which in src may lie apart or be one element.
bool try_short_row_copy(const Tensor& dst, const Tensor& src);
// The same for a src that repeats one element along every dimension. Both have elements.
bool try_splat_copy(const Tensor& dst, const Tensor& src);
} // namespace at::native
