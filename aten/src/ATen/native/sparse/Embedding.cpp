// Gradients that only some rows of a table have, as sparse tensors: what embedding, embedding_bag
// and gather give where they were asked for it.
#include <ATen/native/sparse/Native.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/embedding_sparse_backward.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>

namespace at::native {
namespace {
Tensor rows_of_table(const Tensor& indices, const Tensor& values, IntArrayRef size) {
  return at::_sparse_coo_tensor_unsafe(indices, values, size, values.scalar_type(), Layout::Sparse,
                                       std::nullopt, std::nullopt, std::nullopt);
}
} // namespace

Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx, bool scale_grad_by_freq) {
  TORCH_CHECK(!scale_grad_by_freq,
              "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  TORCH_CHECK(grad.dim() >= 1, "embedding_backward: expected a gradient with rows");
  const int64_t width = grad.size(-1);
  Tensor rows = indices.reshape({-1}).to(kLong);
  Tensor values = grad.reshape({rows.numel(), width});
  if (padding_idx != -1) {
    const Tensor used = at::nonzero(at::ne(rows, Scalar(padding_idx))).view({-1});
    rows = at::index_select(rows, 0, used);
    values = at::index_select(values, 0, used);
  }
  const int64_t size[] = {num_weights, width};
  return rows_of_table(rows.view({1, -1}), values, size);
}

Tensor _embedding_bag_sparse_backward(const Tensor& grad, const Tensor& indices, const Tensor&,
                                      const Tensor& offset2bag, const Tensor& bag_size,
                                      int64_t num_weights, bool scale_grad_by_freq, int64_t mode,
                                      const std::optional<Tensor>& per_sample_weights,
                                      int64_t padding_idx) {
  TORCH_CHECK(mode == 0 || mode == 1, "embedding_bag: sparse gradients need mode sum or mean");
  Tensor scaled = grad;
  if (mode == 1) {
    // An empty bag divides nothing: its row is never picked.
    const Tensor counts = at::clamp_min(bag_size, Scalar(1));
    scaled = at::div(grad, counts.narrow(0, 0, grad.size(0)).to(grad.scalar_type()).unsqueeze(1));
  }
  Tensor rows = at::index_select(scaled, 0, offset2bag);
  if (per_sample_weights && per_sample_weights->defined())
    rows = at::mul(rows, per_sample_weights->unsqueeze(1));
  return at::embedding_sparse_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq);
}

Tensor _gather_sparse_backward(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& grad) {
  const int64_t rank = self.dim();
  TORCH_CHECK_INDEX(rank == 0 || (dim >= -rank && dim < rank), "gather: dimension ", dim,
                    " is out of range");
  TORCH_CHECK(index.dim() == rank && grad.sizes() == index.sizes(),
              "gather backward: the gradient and the index have different sizes");
  // The coordinates of every element of the index, that of `dim` taken from the index itself.
  const Tensor number = at::arange(index.numel(), TensorOptions(kLong).device(index.device()));
  Tensor indices = sparse::unflatten_indices(number, index.sizes());
  if (rank > 0) indices.select(0, dim < 0 ? dim + rank : dim).copy_(index.reshape({-1}));
  return rows_of_table(indices, grad.reshape({-1}), self.sizes());
}

} // namespace at::native
