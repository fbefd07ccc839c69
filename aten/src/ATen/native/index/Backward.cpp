// Gradients of indexing operators as operators of their own, composed of differentiable ones.
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/_gather_sparse_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/masked_scatter.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/new_zeros.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sum_to_size.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SafeArithmetic.h>

namespace at::native {
namespace {
Tensor zeros_beside(const Tensor& grad, SymIntArrayRef sizes) {
  return at::_ops::new_zeros::call(grad, sizes, std::nullopt, std::nullopt, std::nullopt,
                                   std::nullopt);
}
} // namespace

Tensor index_select_backward(const Tensor& grad, SymIntArrayRef self_sizes, int64_t dim,
                             const Tensor& index) {
  return at::index_add(zeros_beside(grad, self_sizes), dim, index, grad);
}

Tensor gather_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                       bool sparse_grad) {
  if (sparse_grad) return at::_gather_sparse_backward(self, dim, index, grad);
  return at::scatter_add(zeros_beside(grad, self.sym_sizes()), dim, index, grad);
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
                                          SymIntArrayRef sizes, bool keepdim) {
  const bool whole = keepdim || sizes.empty();
  const Tensor values = whole ? grad : grad.unsqueeze(dim);
  const Tensor places = whole ? indices : indices.unsqueeze(dim);
  return at::scatter(zeros_beside(grad, sizes), dim, places, values);
}

} // namespace at::native
