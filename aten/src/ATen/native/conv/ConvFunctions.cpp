// The user's convolutions, made of `convolution`: an unbatched input gets a batch of one, and
// padding may be a word.
#include <ATen/native/conv/ConvGeometry.h>
#include <ATen/native/conv/Native.h>
#include <ATen/ops/_convolution_mode.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>

namespace at::native {
namespace {

// The input with a batch dimension, and whether it was added.
std::pair<Tensor, bool> batched(const Tensor& input, int64_t dims, const char* name) {
  TORCH_CHECK(input.dim() == dims + 1 || input.dim() == dims + 2, "Expected ", dims + 1,
              "D (unbatched) or ", dims + 2, "D (batched) input to ", name,
              ", but got input of size: ", input.sizes());
  const bool add = input.dim() == dims + 1;
  return {add ? input.unsqueeze(0) : input, add};
}
Tensor unbatched(const Tensor& output, bool added) { return added ? output.squeeze(0) : output; }

Tensor plain(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
             IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups,
             int64_t dims, const char* name) {
  const auto [x, added] = batched(input, dims, name);
  return unbatched(at::convolution(x, weight, bias, stride, padding, dilation, false, {0}, groups),
                   added);
}
Tensor worded(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups,
              int64_t dims, const char* name) {
  const auto [x, added] = batched(input, dims, name);
  return unbatched(at::_convolution_mode(x, weight, bias, stride, padding, dilation, groups),
                   added);
}
Tensor transpose(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                 IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding,
                 int64_t groups, IntArrayRef dilation, int64_t dims, const char* name) {
  const auto [x, added] = batched(input, dims, name);
  return unbatched(
      at::convolution(x, weight, bias, stride, padding, dilation, true, output_padding, groups),
      added);
}

// Output as large as the input: the padding of both sides together is dilation * (kernel - 1), and
// an odd one is larger by one at the end.
Tensor same_padded(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
  const int64_t rank = weight.dim(), dims = rank - 2;
  TORCH_CHECK(rank >= 3, "weight should have at least three dimensions");
  TORCH_CHECK(input.dim() == rank, "Expected ", rank, "-dimensional input for ", rank,
              "-dimensional weight ", weight.sizes(), ", but got ", input.dim(),
              "-dimensional input of size ", input.sizes(), " instead");
  const DimVector steps = expand_conv_param(stride, "stride", dims),
                  spread = expand_conv_param(dilation, "dilation", dims);
  for (int64_t s : steps)
    TORCH_CHECK(s == 1, "padding='same' is not supported for strided convolutions");
  DimVector both, extra(2 * dims, 0);
  bool odd = false;
  for (int64_t d = 0; d < dims; ++d) {
    TORCH_CHECK(spread[d] > 0, "dilation should be greater than zero, but got ",
                IntArrayRef(spread));
    int64_t total;
    TORCH_CHECK(
        !c10::mul_overflows(spread[d], std::max<int64_t>(weight.size(d + 2) - 1, 0), &total),
        "dilation is too large");
    both.push_back(total / 2);
    extra[2 * (dims - 1 - d) + 1] = total % 2;
    odd |= total % 2 != 0;
  }
  const Tensor padded = odd ? at::constant_pad_nd(input, extra, 0) : input;
  return at::convolution(padded, weight, bias, steps, both, spread, false, DimVector(dims, 0),
                         groups);
}

} // namespace

Tensor _convolution_mode(const Tensor& input, const Tensor& weight,
                         const std::optional<Tensor>& bias, IntArrayRef stride,
                         std::string_view padding, IntArrayRef dilation, int64_t groups) {
  if (padding == "same") return same_padded(input, weight, bias, stride, dilation, groups);
  TORCH_CHECK(padding == "valid", "Invalid padding string: '", padding, "'");
  return at::convolution(input, weight, bias, stride, {0}, dilation, false, {0}, groups);
}

Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return plain(input, weight, bias, stride, padding, dilation, groups, 1, "conv1d");
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return plain(input, weight, bias, stride, padding, dilation, groups, 2, "conv2d");
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return plain(input, weight, bias, stride, padding, dilation, groups, 3, "conv3d");
}
// Time before batch before channels, and a weight in the same order.
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  TORCH_CHECK(self.dim() == 3, "Input must have 3 dims: time, batch, in_channel");
  TORCH_CHECK(weight.dim() == 3,
              "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
  TORCH_CHECK(bias.dim() == 1, "Bias must be 1-D");
  TORCH_CHECK(self.size(2) == weight.size(1),
              "Input dim 2 (input channels) is not == dim 1 in the weight tensor");
  TORCH_CHECK(weight.size(2) == bias.size(0),
              "Bias size must equal dim 2 in the weight tensor (output channels).");
  return at::convolution(self.permute({1, 2, 0}), weight.permute({2, 1, 0}), bias, {1}, {pad}, {1},
                         false, {0}, 1)
      .permute({2, 0, 1})
      .contiguous();
}
Tensor conv1d_padding(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                      IntArrayRef stride, std::string_view padding, IntArrayRef dilation,
                      int64_t groups) {
  return worded(input, weight, bias, stride, padding, dilation, groups, 1, "conv1d");
}
Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                      IntArrayRef stride, std::string_view padding, IntArrayRef dilation,
                      int64_t groups) {
  return worded(input, weight, bias, stride, padding, dilation, groups, 2, "conv2d");
}
Tensor conv3d_padding(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                      IntArrayRef stride, std::string_view padding, IntArrayRef dilation,
                      int64_t groups) {
  return worded(input, weight, bias, stride, padding, dilation, groups, 3, "conv3d");
}
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 1,
                   "conv_transpose1d");
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 2,
                   "conv_transpose2d");
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 3,
                   "conv_transpose3d");
}

// The flags choose among libraries elsewhere; here there is one implementation.
Tensor _convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                    IntArrayRef output_padding, int64_t groups, bool, bool, bool, bool) {
  return at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                         groups);
}
Tensor _convolution_deprecated(const Tensor& input, const Tensor& weight,
                               const std::optional<Tensor>& bias, IntArrayRef stride,
                               IntArrayRef padding, IntArrayRef dilation, bool transposed,
                               IntArrayRef output_padding, int64_t groups, bool, bool, bool) {
  return at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                         groups);
}

} // namespace at::native
