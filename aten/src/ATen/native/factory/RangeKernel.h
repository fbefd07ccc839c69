// How the range factories fill a CUDA tensor: what the elements are, as numbers.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native {

// Mirrors Range.cuh, whose kernels take it as their argument.
struct RangeArgs {
  enum Kind : int32_t { Whole, Floating, Linear, Logarithmic };
  void* out = nullptr;
  int64_t n = 0;
  int32_t kind = Whole;
  int64_t first = 0, by = 0;                 // Whole: first + i * by
  double start = 0, step = 0;                // Floating: start + i * step
  double from[2] = {}, to[2] = {}, base = 0; // real and imaginary part of the ends
};

// `out` is a contiguous CUDA tensor. Throws NotImplementedError for dtypes without a kernel.
void fill_range_cuda(const Tensor& out, RangeArgs args);

} // namespace at::native
