// Products, convolutions, embeddings and sliding blocks as functions.
#pragma once
#include <torch/nn/options/conv.h>
#include <torch/nn/options/embedding.h>
#include <torch/nn/options/vision.h>

namespace torch::nn::functional {

TORCH_API Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
TORCH_API Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                          const Tensor& bias = Tensor());
#define CRESSET_CONVOLUTION(D)                                                                     \
  TORCH_API Tensor conv##D##d(const Tensor& input, const Tensor& weight,                           \
                              const Conv##D##dFuncOptions& options = {});                          \
  TORCH_API Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,                 \
                                        const ConvTranspose##D##dFuncOptions& options = {});
CRESSET_CONVOLUTION(1)
CRESSET_CONVOLUTION(2)
CRESSET_CONVOLUTION(3)
#undef CRESSET_CONVOLUTION
// num_classes < 0: one more than the largest class.
TORCH_API Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1);
TORCH_API Tensor embedding(const Tensor& input, const Tensor& weight,
                           const EmbeddingFuncOptions& options = {});
TORCH_API Tensor embedding_bag(const Tensor& input, const Tensor& weight,
                               const EmbeddingBagFuncOptions& options = {});
TORCH_API Tensor fold(const Tensor& input, const FoldFuncOptions& options);
TORCH_API Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);

} // namespace torch::nn::functional
