// How the range factories fill a CUDA tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/factory/Range.args.h>

namespace at::native {

using device::RangeArgs;

// `out` is a contiguous CUDA tensor. Throws NotImplementedError for dtypes without a kernel.
void fill_range_cuda(const Tensor& out, RangeArgs args);

} // namespace at::native
