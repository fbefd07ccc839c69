// renorm: slices of a tensor whose norm is above a limit are scaled down to it.
#include <ATen/native/reduce/Native.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>

namespace at::meta {

void meta_renorm(OutputBuilder& out, const Tensor& self, const Scalar& p, int64_t dim,
                 const Scalar& maxnorm) {
  const char* complex = p.isComplex() ? "p" : maxnorm.isComplex() ? "maxnorm" : nullptr;
  TORCH_CHECK(complex == nullptr, "renorm: ", complex, " must be real-valued");
  const double order = p.toDouble(), most = maxnorm.toDouble();
  TORCH_CHECK(order > 0, "renorm: non-positive-norm not supported");
  TORCH_CHECK(most >= 0, "renorm: expected maxnorm to be >= 0 but got ", most);
  const int64_t rank = self.dim();
  TORCH_CHECK(rank >= 2, "renorm: input needs at least 2 dimensions, got ", rank, " dimensions");
  native::wrap_dim(dim, rank);
  TORCH_CHECK(self.is_floating_point() || self.is_complex(),
              "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
              self.scalar_type());
  out.set(0, self.sizes(), self.scalar_type());
}

} // namespace at::meta

namespace at::native {

void renorm_cpu(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm,
                const Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim());
  DimVector others;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != d) others.push_back(i);
  // Norms and factors in double, so that a slice on the limit is not scaled by rounding.
  const Tensor norm =
      at::linalg_vector_norm(self, p, IntArrayRef(others), true).to(kDouble).contiguous();
  const Tensor factor = at::detail::empty(norm.sizes(), kDouble);
  const double* n = norm.data_ptr<double>();
  double* f = factor.data_ptr<double>();
  const double limit = maxnorm.toDouble();
  for (int64_t i = 0; i < norm.numel(); ++i) f[i] = n[i] > limit ? limit / (n[i] + 1e-7) : 1.0;
  const ScalarType real = c10::toRealValueType(self.scalar_type());
  out.copy_(at::mul(self, factor.to(real)));
}

} // namespace at::native
