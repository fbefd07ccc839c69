// Padding, resampling and shuffling as functions.
#pragma once
#include <torch/nn/options/padding.h>
#include <torch/nn/options/vision.h>

namespace torch::nn::functional {

TORCH_API Tensor pad(const Tensor& input, const PadFuncOptions& options);
TORCH_API Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});
TORCH_API Tensor grid_sample(const Tensor& input, const Tensor& grid,
                             const GridSampleFuncOptions& options = {});
TORCH_API Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);
TORCH_API Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options);
TORCH_API Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options);

} // namespace torch::nn::functional
