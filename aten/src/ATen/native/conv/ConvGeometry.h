// The numbers of one convolution, and the checks that make them safe to compute with. Every
// convolution is brought to three spatial dimensions (missing ones of size 1), and a transposed
// convolution is described by the plain convolution whose input gradient it computes, so that the
// kernels know one form.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {

struct ConvGeometry {
  int64_t n, c, o, groups; // batch, channels of the large and of the small side
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t c_per_group() const { return c / groups; }
  int64_t o_per_group() const { return o / groups; }
  // A product with the input as it lies in memory.
  bool is_pointwise() const {
    for (int i = 0; i < 3; ++i)
      if (kernel[i] != 1 || stride[i] != 1 || padding[i] != 0) return false;
    return true;
  }
  bool is_depthwise() const { return c == groups && groups > 1; }
};

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
// Of the plain convolution: `large` is its input, `small` its output.
ConvGeometry conv_geometry(IntArrayRef large, IntArrayRef weight, IntArrayRef small,
                           const ConvParams& params);
// Channels last when the input or the weight lies so.
MemoryFormat conv_memory_format(const Tensor& input, const Tensor& weight);

} // namespace at::native
