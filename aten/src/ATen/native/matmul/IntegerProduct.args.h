// The arguments of IntegerProduct.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// d = alpha a b + beta c for a batch of products; any strides, in elements.
struct IntegerProduct {
  int64_t m, n, k;
  int64_t a[3], b[3], c[3], d[3]; // strides: batch, row, column
  int64_t alpha, beta;
};
CRESSET_LAYOUT(IntegerProduct, 136, beta, 128);

} // namespace at::device
