// What losses share: the reduction argument.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {

// The values of the `reduction` argument in the operator schemas.
enum Reduction : int64_t { kNoReduction = 0, kMeanReduction = 1, kSumReduction = 2 };

// The loss as it is, its mean or its sum; RuntimeError for another value.
Tensor apply_reduction(const Tensor& loss, int64_t reduction);
void check_reduction(int64_t reduction);

} // namespace at::native
