// Gradients of the operators on sparse tensors. A gradient of a sparse tensor has the pattern of
// that tensor, unless the gradient that arrives is already sparse.
#pragma once
#include <torch/csrc/autograd/generated_node.h>

namespace torch::autograd::generated {

inline at::Layout self_layout(const at::Tensor& self) { return self.layout(); }
// The gradient of the values a tensor was made from, one for each of its elements.
at::Tensor grad_at_elements(const at::Tensor& grad, const at::Tensor& result);
// The gradient of a tensor from that of its values.
at::Tensor grad_of_elements(const at::Tensor& grad, const at::Tensor& self);
at::Tensor grad_from_dense(const at::Tensor& grad, const at::Tensor& self,
                           std::optional<bool> masked_grad);
at::Tensor grad_in_layout(const at::Tensor& grad, at::Layout layout);
// Only the elements that `pattern` has, where that is sparse.
at::Tensor masked_like(const at::Tensor& grad, const at::Tensor& pattern);
at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b);

} // namespace torch::autograd::generated
