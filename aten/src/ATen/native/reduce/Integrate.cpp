// The trapezoidal rule, in sums of slices.
#include <ATen/native/reduce/Native.h>

#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/trapezoid.h>
#include <ATen/ops/zeros.h>

namespace at::native {
namespace {

int64_t sample_dim(const Tensor& y, int64_t dim) {
  TORCH_CHECK_INDEX(y.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, y.dim());
}

Tensor without_last(const Tensor& t, int64_t dim) { return t.slice(dim, 0, -1); }
Tensor without_first(const Tensor& t, int64_t dim) { return t.slice(dim, 1); }

// The distances between the sample points, shaped to multiply slices of y.
Tensor distances(const char* fn, const Tensor& y, const Tensor& x, int64_t dim) {
  TORCH_CHECK(y.scalar_type() != kBool && x.scalar_type() != kBool, fn,
              ": received a bool input for `x` or `y`, but bool is not supported");
  if (x.dim() != 1) {
    Tensor points = x;
    while (points.dim() < y.dim()) points = points.unsqueeze(0);
    return at::sub(without_first(points, dim), without_last(points, dim));
  }
  TORCH_CHECK(x.sizes()[0] == y.sizes()[dim], fn,
              ": There must be one `x` value for each sample point");
  DimVector shape(y.dim(), 1);
  shape[dim] = x.sizes()[0] - 1;
  return at::sub(without_first(x, 0), without_last(x, 0)).view(shape);
}

void check_dx(const char* fn, const Tensor& y, const Scalar& dx) {
  TORCH_CHECK(y.scalar_type() != kBool, fn,
              ": received a bool input for `y`, but bool is not supported");
  TORCH_CHECK(!dx.isComplex() && !dx.isBoolean(), fn,
              ": Currently, we only support dx as a real number.");
}

Tensor zeros_without(const Tensor& y, int64_t dim) {
  DimVector shape(y.sizes());
  shape.erase(shape.begin() + dim);
  return at::zeros(shape, y.options());
}

} // namespace

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = sample_dim(y, dim);
  if (y.sizes()[d] == 0) return zeros_without(y, d);
  const Tensor dx = distances("trapezoid", y, x, d);
  const Tensor pairs = at::add(without_first(y, d), without_last(y, d));
  return at::div(at::sum(at::mul(pairs, dx), IntArrayRef(&d, 1)), Scalar(2.0));
}
Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  const int64_t d = sample_dim(y, dim);
  if (y.sizes()[d] == 0) return zeros_without(y, d);
  check_dx("trapezoid", y, dx);
  const Tensor ends = at::mul(at::add(y.select(d, 0), y.select(d, -1)), Scalar(0.5));
  return at::mul(at::sub(at::sum(y, IntArrayRef(&d, 1)), ends), dx);
}
Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim) { return at::trapezoid(y, x, dim); }
Tensor trapz(const Tensor& y, double dx, int64_t dim) { return at::trapezoid(y, Scalar(dx), dim); }

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  TORCH_CHECK_INDEX(y.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, y.dim());
  const Tensor dx = distances("cumulative_trapezoid", y, x, d);
  const Tensor pairs = at::add(without_first(y, d), without_last(y, d));
  return at::div(at::cumsum(at::mul(pairs, dx), d), Scalar(2.0));
}
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  TORCH_CHECK_INDEX(y.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  check_dx("cumulative_trapezoid", y, dx);
  const int64_t d = wrap_dim(dim, y.dim());
  const Tensor pairs = at::add(without_first(y, d), without_last(y, d));
  const Scalar half = dx.isComplex() ? Scalar(dx.toComplexDouble() / c10::complex<double>(2, 0))
                                     : Scalar(dx.toDouble() / 2);
  return at::cumsum(at::mul(pairs, half), d);
}

} // namespace at::native
