// What the kernels of _scaled_mm share.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace at::native {

struct ScaledProduct {
  int64_t m, n, k;
  bool whole; // one scale for each matrix, else one for each row and column
  ScalarType dtype;
};

// Checks the operands of _scaled_mm.
ScaledProduct scaled_product(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                             const Tensor& scale_b, const std::optional<Tensor>& bias,
                             std::optional<ScalarType> out_dtype);

// The result from the float32 sums of products without scales.
Tensor finish_scaled(const Tensor& sums, const ScaledProduct& p, const Tensor& scale_a,
                     const Tensor& scale_b, const std::optional<Tensor>& bias,
                     const std::optional<Tensor>& scale_result);

} // namespace at::native
