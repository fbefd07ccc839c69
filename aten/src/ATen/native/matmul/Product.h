// Matrix products on CUDA for other operators.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native {

// out = alpha a b for matrices, or for batches of them (rank 3). `out` has the operands' dtype, or
// Float where they are of a half type: the sums then keep their precision.
void product_cuda(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha);
// out += alpha a b.
void add_product_cuda(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha);

} // namespace at::native
