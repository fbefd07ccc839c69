// torch::tensor: a tensor from values that are written down, nested as deep as they are.
#pragma once
#include <torch/detail/TensorDataContainer.h>

namespace torch {

// Integers make int64, numbers with a point the default dtype, unless the options say otherwise.
inline at::Tensor tensor(detail::TensorDataContainer values,
                         const at::TensorOptions& options = {}) {
  return values.convert_to_tensor(options);
}

} // namespace torch
