// Weight norm: a weight as a length for each slice along one dimension and a direction.
#include <ATen/native/norm/Native.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/norm_except_dim.h>

namespace at::native {

Tensor _weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  return at::mul(v, at::div(g, at::norm_except_dim(v, 2, dim)));
}

} // namespace at::native
