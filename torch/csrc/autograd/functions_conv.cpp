// Gradients of convolutions and poolings. The convolution's gradient operator is linear in each of
// grad_output, input and weight, so its own gradients are convolutions and gradient operators
// again, and any order can be asked for.
#include <algorithm>

#include <ATen/ops/col2im.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/gather.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {
namespace {

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

// The sizes with the last `dims` dimensions as one.
c10::DimVector flat_planes(IntArrayRef sizes, int64_t dims) {
  c10::DimVector out(sizes.slice(0, sizes.size() - dims));
  int64_t plane = 1;
  for (int64_t s : sizes.slice(sizes.size() - dims, dims)) plane *= s;
  out.push_back(plane);
  return out;
}

} // namespace

std::tuple<Tensor, Tensor, Tensor> conv_grad(const Tensor& grad, const Tensor& input,
                                             const Tensor& weight, IntArrayRef stride,
                                             IntArrayRef padding, IntArrayRef dilation,
                                             bool transposed, IntArrayRef output_padding,
                                             int64_t groups, std::array<bool, 3> mask) {
  const auto numbers = [](IntArrayRef list) { return c10::as_symint_array(list); };
  return at::convolution_backward_symint(grad, input, weight,
                                         c10::OptionalSymIntArrayRef(grad.sym_sizes().slice(1, 1)),
                                         numbers(stride), numbers(padding), numbers(dilation),
                                         transposed, numbers(output_padding), groups, mask);
}

std::tuple<Tensor, Tensor, Tensor> conv_grad_grad(const TensorVec& grads, const Tensor& grad_output,
                                                  const Tensor& input, const Tensor& weight,
                                                  IntArrayRef stride, IntArrayRef padding,
                                                  IntArrayRef dilation, bool transposed,
                                                  IntArrayRef output_padding, int64_t groups,
                                                  std::array<bool, 3> mask) {
  const auto forward = [&](const Tensor& x, const Tensor& w) {
    return at::convolution(x, w, {}, stride, padding, dilation, transposed, output_padding, groups);
  };
  const auto backward = [&](const Tensor& x, const Tensor& w, std::array<bool, 3> which) {
    return at::convolution_backward(grad_output, x, w, std::nullopt, stride, padding, dilation,
                                    transposed, output_padding, groups, which);
  };
  Tensor to_grad, to_input, to_weight;
  if (mask[0]) {
    if (grads[0].defined()) to_grad = forward(grads[0], weight);
    if (grads[1].defined()) to_grad = plus(to_grad, forward(input, grads[1]));
    if (grads[2].defined()) {
      c10::DimVector shape(grad_output.dim(), 1);
      shape[1] = grad_output.size(1);
      to_grad = plus(to_grad, grads[2].reshape(shape).expand(grad_output.sizes()));
    }
  }
  if (mask[1] && grads[1].defined())
    to_input = std::get<0>(backward(input, grads[1], {true, false, false}));
  if (mask[2] && grads[0].defined())
    to_weight = std::get<1>(backward(grads[0], weight, {false, true, false}));
  return {to_grad, to_input, to_weight};
}

Tensor im2col_grad(const Tensor& grad, IntArrayRef sizes, IntArrayRef kernel_size,
                   IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  return at::col2im(grad, sizes.slice(sizes.size() - 2, 2), kernel_size, dilation, padding, stride);
}

Tensor gather_planes(const Tensor& grad, const Tensor& indices, int64_t dims) {
  const Tensor places = indices.reshape(IntArrayRef(flat_planes(indices.sizes(), dims)));
  return at::gather(grad.reshape(IntArrayRef(flat_planes(grad.sizes(), dims))), -1, places)
      .reshape(indices.sizes());
}
bool pools_all(c10::SymIntArrayRef output_size) {
  return std::all_of(output_size.begin(), output_size.end(),
                     [](const c10::SymInt& size) { return size == 1; });
}

IntArrayRef last_sizes(IntArrayRef sizes, int64_t dims) {
  return sizes.slice(sizes.size() - dims, dims);
}

} // namespace torch::autograd::generated
