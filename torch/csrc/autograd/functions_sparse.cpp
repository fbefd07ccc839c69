// Gradients of the operators on sparse tensors. See functions_sparse.h.
#include <torch/csrc/autograd/functions_sparse.h>

#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_values.h>
#include <ATen/ops/coalesce.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sparse_mask.h>
#include <ATen/ops/to_dense.h>
#include <ATen/ops/to_sparse.h>
#include <ATen/ops/values.h>

namespace torch::autograd::generated {
using at::Tensor;

Tensor masked_like(const Tensor& grad, const Tensor& pattern) {
  return at::sparse::is_sparse_layout(pattern.layout()) ? at::_ops::sparse_mask::call(grad, pattern)
                                                        : grad_in_layout(grad, at::kStrided);
}

Tensor grad_at_elements(const Tensor& grad, const Tensor& result) {
  const Tensor there = at::_ops::sparse_mask::call(grad, result);
  return result.layout() == at::Layout::Sparse ? at::_ops::_values::call(there)
                                               : at::_ops::values::call(there);
}

Tensor grad_of_elements(const Tensor& grad, const Tensor& self) {
  const at::sparse::SparseTensorImpl& s = at::sparse::any_sparse(self, "values");
  if (self.layout() == at::Layout::Sparse)
    return at::_sparse_coo_tensor_unsafe(s.indices, grad, self.sizes(), grad.scalar_type(),
                                         at::Layout::Sparse, std::nullopt, std::nullopt, true);
  return at::_sparse_compressed_tensor_unsafe(s.indices, s.plain, grad, self.sizes(),
                                              grad.scalar_type(), self.layout(), std::nullopt,
                                              std::nullopt);
}

Tensor grad_from_dense(const Tensor& grad, const Tensor& self, std::optional<bool> masked_grad) {
  if (at::sparse::is_sparse_layout(grad.layout())) return grad;
  if (!masked_grad.value_or(true) && self.layout() == at::Layout::Sparse) {
    const int64_t dims = at::sparse::any_sparse(self, "to_dense").sparse_dim;
    return at::_ops::to_sparse_sparse_dim::call(grad, dims);
  }
  const bool apart = self.layout() == at::Layout::Sparse;
  return masked_like(grad, apart ? at::_ops::coalesce::call(self) : self);
}

Tensor grad_in_layout(const Tensor& grad, at::Layout layout) {
  if (grad.layout() == layout) return grad;
  return layout == at::kStrided ? at::_ops::to_dense::call(grad, std::nullopt, std::nullopt) : grad;
}

Tensor matrix_product(const Tensor& a, const Tensor& b) { return at::mm(a, b); }

} // namespace torch::autograd::generated
