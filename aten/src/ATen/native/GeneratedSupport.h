// Helpers that generated kernel wrappers call.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {

// Resizes an out= tensor to `sizes` when it differs (with PyTorch's warning when it was not empty).
// True when it was resized.
TORCH_API bool resize_output(const Tensor& out, IntArrayRef sizes);

namespace generated {
// An in-place variant made of the functional one: shapes must agree and the dtype must be castable.
TORCH_API void store_inplace(Tensor& self, const Tensor& result);
// What such a variant computes with where its parts may save self for backward: a copy while
// gradients are recorded, else self.
TORCH_API Tensor kept_for_backward(const Tensor& self);
// An out variant made of the functional one: resizes and copies.
TORCH_API void store_out(Tensor& out, const Tensor& result);
// The same of a 1-d result; an out of as many elements keeps its shape and takes them in order.
TORCH_API void store_sequence(Tensor& out, const Tensor& result);
} // namespace generated

} // namespace at::native
