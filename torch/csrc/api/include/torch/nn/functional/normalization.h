// Normalisations, dropout and distances as functions.
#pragma once
#include <torch/nn/options/distance.h>
#include <torch/nn/options/dropout.h>
#include <torch/nn/options/normalization.h>

namespace torch::nn::functional {

TORCH_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean,
                            const Tensor& running_var, const BatchNormFuncOptions& options = {});
TORCH_API Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
TORCH_API Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
TORCH_API Tensor local_response_norm(const Tensor& input,
                                     const LocalResponseNormFuncOptions& options);
TORCH_API Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
TORCH_API Tensor normalize(const Tensor& input, NormalizeFuncOptions options = {});

TORCH_API Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});
TORCH_API Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options = {});
TORCH_API Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options = {});
TORCH_API Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options = {});
TORCH_API Tensor feature_alpha_dropout(Tensor input,
                                       const FeatureAlphaDropoutFuncOptions& options = {});

// The same with their options as arguments.
namespace detail {
inline Tensor dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::dropout(std::move(input),
                             DropoutFuncOptions().p(p).training(training).inplace(inplace));
}
inline Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::alpha_dropout(
      std::move(input), AlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
inline Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::feature_alpha_dropout(
      std::move(input), FeatureAlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
} // namespace detail

TORCH_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                                   const CosineSimilarityFuncOptions& options = {});
TORCH_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                                   const PairwiseDistanceFuncOptions& options = {});
TORCH_API Tensor pdist(const Tensor& input, double p = 2.0);

} // namespace torch::nn::functional
