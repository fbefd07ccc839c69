// The three products of a convolution on raw memory: forward, gradient of the input, gradient of
// the weight. The transposed convolution is the second one. The large side and the weight are
// contiguous; the small side may lie contiguous or channels last.
#pragma once
#include <ATen/native/conv/ConvGeometry.h>

namespace at::native {

// Distances, in elements, between samples, channels and positions of the small side.
struct PlaneStrides {
  int64_t sample, channel, position;
};
PlaneStrides plane_strides(const Tensor& t);

// `bias` may be undefined. Types: those of gemm for the forward product, without Half and BFloat16
// for the gradients (sums over many products would be rounded each time; callers convert to float).
void conv_forward(const ConvGeometry& g, const Tensor& input, const Tensor& weight,
                  const Tensor& bias, const Tensor& output, const char* name);
void conv_input_gradient(const ConvGeometry& g, const Tensor& grad_output, const Tensor& weight,
                         const Tensor& grad_input, const char* name);
void conv_weight_gradient(const ConvGeometry& g, const Tensor& grad_output, const Tensor& input,
                          const Tensor& grad_weight, const char* name);

} // namespace at::native
