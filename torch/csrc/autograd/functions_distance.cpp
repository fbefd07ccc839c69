// Distances written with simple operators, for the second derivatives of cdist and pdist.
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/triu_indices.h>
#include <torch/csrc/autograd/second_order.h>

namespace torch::autograd::generated {
namespace {
Tensor norm_of_rows(const Tensor& t, double p) {
  const int64_t last[1] = {-1};
  return at::linalg_vector_norm(t, p, IntArrayRef(last));
}
} // namespace

Forward cdist_forward(double p) {
  return
      [p](const Tensors& in) { return norm_of_rows(in[0].unsqueeze(-2) - in[1].unsqueeze(-3), p); };
}

Forward pdist_forward(double p) {
  return [p](const Tensors& in) {
    const int64_t rows = in[0].size(0);
    const Tensor pairs = at::triu_indices(rows, rows, 1, in[0].options().dtype(at::kLong));
    return norm_of_rows(at::index_select(in[0], 0, pairs.select(0, 0)) -
                            at::index_select(in[0], 0, pairs.select(0, 1)),
                        p);
  };
}

} // namespace torch::autograd::generated
