// The checks that make the numbers of a convolution (ConvNumbers.h) safe to compute with.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/native/conv/ConvNumbers.h>

namespace at::native {

// stride, padding, ... with one value per spatial dimension; Error when the length is neither 1 nor
// `dim`.
DimVector expand_conv_param(IntArrayRef values, const char* name, int64_t dim);

struct ConvParams {
  DimVector stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};
// Expands and checks everything that can be wrong with sizes.
ConvParams check_convolution(IntArrayRef input, IntArrayRef weight,
                             const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef dilation, bool transposed,
                             IntArrayRef output_padding, int64_t groups);
DimVector convolution_output_size(IntArrayRef input, IntArrayRef weight, const ConvParams& params);
// The sizes of the result where some of the arguments' are symbolic: what must hold is stated.
c10::SmallVector<SymInt, 6> symbolic_convolution_size(const Tensor& input, const Tensor& weight,
                                                      const std::optional<Tensor>& bias,
                                                      const ConvParams& params);
// Expands and checks the numbers alone.
ConvParams check_conv_params(int64_t rank, IntArrayRef stride, IntArrayRef padding,
                             IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                             int64_t groups);
// Of the plain convolution: `large` is its input, `small` its output.
ConvGeometry conv_geometry(IntArrayRef large, IntArrayRef weight, IntArrayRef small,
                           const ConvParams& params);
// Channels last when the input or the weight lies so.
MemoryFormat conv_memory_format(const Tensor& input, const Tensor& weight);

} // namespace at::native
