// Pooling as functions.
#pragma once
#include <torch/nn/options/pooling.h>

namespace torch::nn::functional {

#define CRESSET_POOLING(D)                                                                         \
  TORCH_API Tensor avg_pool##D##d(const Tensor& input, const AvgPool##D##dFuncOptions& options);   \
  TORCH_API Tensor max_pool##D##d(const Tensor& input, const MaxPool##D##dFuncOptions& options);   \
  TORCH_API std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(                                \
      const Tensor& input, const MaxPool##D##dFuncOptions& options);                               \
  TORCH_API Tensor adaptive_avg_pool##D##d(const Tensor& input,                                    \
                                           const AdaptiveAvgPool##D##dFuncOptions& options);       \
  TORCH_API Tensor adaptive_max_pool##D##d(const Tensor& input,                                    \
                                           const AdaptiveMaxPool##D##dFuncOptions& options);       \
  TORCH_API std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                       \
      const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& options);                       \
  TORCH_API Tensor max_unpool##D##d(const Tensor& input, const Tensor& indices,                    \
                                    const MaxUnpool##D##dFuncOptions& options);                    \
  TORCH_API Tensor lp_pool##D##d(const Tensor& input, const LPPool##D##dFuncOptions& options);
CRESSET_POOLING(1)
CRESSET_POOLING(2)
CRESSET_POOLING(3)
#undef CRESSET_POOLING
TORCH_API Tensor fractional_max_pool2d(const Tensor& input,
                                       const FractionalMaxPool2dFuncOptions& options);
TORCH_API std::tuple<Tensor, Tensor>
fractional_max_pool2d_with_indices(const Tensor& input,
                                   const FractionalMaxPool2dFuncOptions& options);
TORCH_API Tensor fractional_max_pool3d(const Tensor& input,
                                       const FractionalMaxPool3dFuncOptions& options);
TORCH_API std::tuple<Tensor, Tensor>
fractional_max_pool3d_with_indices(const Tensor& input,
                                   const FractionalMaxPool3dFuncOptions& options);

} // namespace torch::nn::functional
