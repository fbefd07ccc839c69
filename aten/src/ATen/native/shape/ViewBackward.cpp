// Derivatives of partial views: zeros of the input's size with the gradient written into the same
// view. They are operators of their own so that a gradient can be differentiated again and traced.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Native.h>

#include <ATen/ops/add.h>

namespace at::native {
namespace {

Tensor zeros_of(const Tensor& grad, IntArrayRef sizes) {
  Tensor out = detail::empty(sizes, grad.scalar_type(), grad.device());
  out.zero_();
  return out;
}

} // namespace

Tensor select_backward(const Tensor& grad_output, IntArrayRef input_sizes, int64_t dim,
                       int64_t index) {
  const Tensor out = zeros_of(grad_output, input_sizes);
  native::select(out, dim, index).copy_(grad_output);
  return out;
}

Tensor slice_backward(const Tensor& grad_output, IntArrayRef input_sizes, int64_t dim,
                      int64_t start, int64_t end, int64_t step) {
  const Tensor out = zeros_of(grad_output, input_sizes);
  native::slice(out, dim, start, end, step).copy_(grad_output);
  return out;
}

Tensor diagonal_backward(const Tensor& grad_output, IntArrayRef input_sizes, int64_t offset,
                         int64_t dim1, int64_t dim2) {
  const Tensor out = zeros_of(grad_output, input_sizes);
  native::diagonal(out, offset, dim1, dim2).copy_(grad_output);
  return out;
}

// Windows may overlap, so the gradient is added one window position at a time: the positions of one
// such step are disjoint, and the order of additions is fixed.
Tensor unfold_backward(const Tensor& grad_in, IntArrayRef input_sizes, int64_t dim, int64_t size,
                       int64_t step) {
  const Tensor out = zeros_of(grad_in, input_sizes);
  const Tensor windows = native::unfold(out, dim, size, step);
  TORCH_CHECK(grad_in.sizes() == windows.sizes(), "unfold_backward: expected a gradient of size ",
              windows.sizes(), " but got ", grad_in.sizes());
  for (int64_t i = 0; i < size; ++i) {
    Tensor positions = native::select(windows, -1, i);
    at::_ops::add__Tensor::call(positions, native::select(grad_in, -1, i), 1);
  }
  return out;
}

} // namespace at::native
