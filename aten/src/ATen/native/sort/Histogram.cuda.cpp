// bincount and histc on CUDA: elements name their bins, and index_add counts them in a fixed order.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/sort/Native.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace at::native {
namespace {

Tensor count(const Tensor& bins, const Tensor& weights, int64_t number) {
  return at::index_add(at::zeros({number}, weights.options()), 0, bins, weights);
}
Tensor ones_for(const Tensor& t) {
  return at::ones({t.numel()}, TensorOptions().dtype(kLong).device(t.device()));
}

// The value as the dtype holds it.
double rounded(double value, ScalarType dtype) {
  const Tensor t = detail::empty({}, dtype);
  t.fill_(value);
  return t.item().toDouble();
}

} // namespace

Tensor bincount_cuda(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  constexpr const char* kWhat = "bincount only supports 1-d non-negative integral inputs.";
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1, kWhat);
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isIntegralType(self.scalar_type(), false),
                              "\"bincount_cuda\" not implemented for '", self.scalar_type(), "'");
  const bool given = weights && weights->defined();
  TORCH_CHECK(!given || (weights->dim() == 1 && weights->size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  if (self.numel() == 0)
    return at::zeros({minlength}, TensorOptions().dtype(kLong).device(self.device()));
  const Tensor bins = self.to(kLong);
  TORCH_CHECK(at::min(bins).item<int64_t>() >= 0, kWhat);
  const int64_t largest = at::max(bins).item<int64_t>();
  TORCH_CHECK(largest < INT64_MAX, "bincount: the value ", largest, " is too large");
  const int64_t number = std::max(largest + 1, minlength);
  if (!given) return count(bins, ones_for(bins), number);
  const ScalarType dtype = weights->scalar_type() == kFloat ? kFloat : kDouble;
  return count(bins, weights->to(dtype), number);
}

Tensor histc_cuda(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const ScalarType dtype = self.scalar_type();
  TORCH_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension 0");
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(dtype),
                              "\"histogram_cuda\" not implemented for '", dtype, "'");
  double low = min.toDouble(), high = max.toDouble();
  if (low == high && self.numel() > 0) {
    low = at::min(self).item().toDouble();
    high = at::max(self).item().toDouble();
  }
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high,
              "] is not finite");
  TORCH_CHECK(low <= high, "torch.histc: max must be larger than min");
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (self.numel() == 0) return at::zeros({bins}, self.options());
  // The arithmetic of the dtype itself decides the bin of elements on an edge.
  const double start = rounded(low, dtype), stop = rounded(high, dtype);
  const Tensor v = self.reshape({self.numel()});
  const Tensor inside = at::logical_and(at::ge(v, start), at::le(v, stop));
  const Tensor scaled =
      at::div(at::mul(at::sub(v, start), rounded(static_cast<double>(bins), dtype)),
              rounded(stop - start, dtype));
  const Tensor place =
      at::clamp(at::where(inside, scaled, Scalar(0)).to(kLong), Scalar(0), Scalar(bins - 1));
  // Elements outside of the range go to a bin behind the last.
  return count(at::where(inside, place, Scalar(bins)), ones_for(v), bins + 1)
      .narrow(0, 0, bins)
      .to(dtype);
}

} // namespace at::native
