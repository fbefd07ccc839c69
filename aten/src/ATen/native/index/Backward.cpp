// Gradients of indexing operators as operators of their own, composed of differentiable ones.
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/_gather_sparse_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/masked_scatter.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sum_to_size.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SafeArithmetic.h>

namespace at::native {

Tensor index_select_backward(const Tensor& grad, IntArrayRef self_sizes, int64_t dim,
                             const Tensor& index) {
  return at::index_add(at::zeros(self_sizes, grad.options()), dim, index, grad);
}

Tensor gather_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                       bool sparse_grad) {
  if (sparse_grad) return at::_gather_sparse_backward(self, dim, index, grad);
  return at::scatter_add(at::zeros(self.sizes(), grad.options()), dim, index, grad);
}

Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntArrayRef sizes) {
  const int64_t numel = c10::checked_numel(sizes);
  // Elements of the source beyond the number of true ones were not used.
  Tensor used = at::masked_select(grad_output, mask);
  const int64_t unused = numel - used.numel();
  TORCH_CHECK(unused >= 0, "masked_scatter_backward: the source has ", numel,
              " elements, the mask more");
  if (unused > 0) {
    const Tensor parts[] = {used, at::zeros({unused}, grad_output.options())};
    used = at::cat(TensorList(parts, 2), 0);
  }
  return used.view(sizes);
}

Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask) {
  const DimVector shape = broadcast_shapes(input.sizes(), mask.sizes());
  const Tensor full = at::masked_scatter(at::zeros(shape, grad.options()), mask, grad);
  return at::_ops::sum_to_size::call(full, c10::as_symint_array(input.sizes()));
}

Tensor value_selecting_reduction_backward(const Tensor& grad, int64_t dim, const Tensor& indices,
                                          IntArrayRef sizes, bool keepdim) {
  const Tensor zeros = at::zeros(sizes, grad.options());
  if (keepdim || sizes.empty()) return at::scatter(zeros, dim, indices, grad);
  return at::scatter(zeros, dim, indices.unsqueeze(dim), grad.unsqueeze(dim));
}

} // namespace at::native
