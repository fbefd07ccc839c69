// quantile and nanquantile, composed of differentiable operators: sort along the dimension, gather
// the neighbours of each rank, interpolate. NaNs sort last, which is how they are found.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/sort/Native.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

namespace at::native {
namespace {

void check_quantile(const char* name, const Tensor& self, const Tensor& q,
                    std::string_view interpolation) {
  TORCH_CHECK(self.numel() > 0, name, "() input tensor must be non-empty");
  TORCH_CHECK(q.dim() <= 1, name, "() q must be a scalar or 1D tensor");
  TORCH_CHECK(self.scalar_type() == kFloat || self.scalar_type() == kDouble, name,
              "() input tensor must be either float or double dtype");
  TORCH_CHECK(self.scalar_type() == q.scalar_type(), name,
              "() q tensor must be same dtype as the input tensor");
  TORCH_CHECK(interpolation == "linear" || interpolation == "lower" || interpolation == "higher" ||
                  interpolation == "midpoint" || interpolation == "nearest",
              name,
              "() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
              "got ",
              interpolation);
  // A tensor of a function transform has no memory to look at, and a fake one no data.
  if (!q.is_cpu() || !q.has_storage() || q.key_set().has(DispatchKey::Meta)) return;
  const Tensor values = q.detach().to(kDouble).contiguous();
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double v = values.data_ptr<double>()[i];
    TORCH_CHECK(v >= 0 && v <= 1, name, "() q values must be in the range [0, 1]");
  }
}

// The ranks of q in each row of `sorted` (..., n): (..., number of quantiles).
Tensor ranks_of(const Tensor& sorted, const Tensor& q, bool ignore_nan) {
  const int64_t n = sorted.size(-1);
  if (ignore_nan) {
    const int64_t last_dim = -1;
    const Tensor valid =
        at::sum(at::logical_not(at::isnan(sorted)), IntArrayRef(&last_dim, 1), true);
    const Tensor last = at::clamp(at::sub(valid, Scalar(1)), Scalar(0)).to(sorted.scalar_type());
    return at::mul(q, last);
  }
  DimVector shape(sorted.sizes());
  shape.back() = q.numel();
  // A row with a NaN gives its last element, which is NaN.
  const Tensor has_nan = at::isnan(sorted.narrow(-1, n - 1, 1));
  return at::masked_fill(at::mul(q, Scalar(n - 1)).expand(shape), has_nan, Scalar(n - 1));
}

Tensor interpolate(const Tensor& sorted, const Tensor& ranks, std::string_view how) {
  const auto pick = [&](const Tensor& r) { return at::gather(sorted, -1, r.to(kLong)); };
  if (how == "lower") return pick(at::floor(ranks));
  if (how == "higher") return pick(at::ceil(ranks));
  if (how == "nearest") return pick(at::round(ranks));
  const Tensor below = at::floor(ranks);
  const Tensor low = pick(below), high = pick(at::ceil(ranks));
  if (how == "midpoint") return at::lerp(low, high, Scalar(0.5));
  return at::lerp(low, high, at::sub(ranks, below));
}

Tensor quantile_any(const char* name, const Tensor& self, const Tensor& q,
                    std::optional<int64_t> dim, bool keepdim, std::string_view interpolation,
                    bool ignore_nan) {
  check_quantile(name, self, q, interpolation);
  const int64_t d = wrap_dim(dim.value_or(0), self.dim());
  Tensor rows;
  if (!dim || self.dim() == 0)
    rows = self.reshape({-1});
  else
    rows = at::movedim(self, d, -1);
  const Tensor sorted = std::get<0>(at::sort(rows, -1, false));
  const Tensor ranks = ranks_of(sorted, q.dim() == 0 ? q.unsqueeze(0) : q, ignore_nan);
  Tensor out = interpolate(sorted, ranks, interpolation);
  if (keepdim && self.dim() > 0) {
    if (dim) {
      out = out.unsqueeze(d);
    } else {
      DimVector ones(static_cast<size_t>(self.dim()), 1);
      ones.push_back(q.numel());
      out = out.reshape(ones);
    }
  }
  return q.dim() == 0 ? out.squeeze(-1) : at::movedim(out, -1, 0);
}

Tensor scalar_q(const Tensor& self, double q) {
  TORCH_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got ", q);
  const ScalarType dtype = self.scalar_type() == kDouble ? kDouble : kFloat;
  return at::scalar_tensor(q, self.options().dtype(dtype));
}

} // namespace

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_any("quantile", self, q, dim, keepdim, interpolation, false);
}

Tensor quantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view interpolation) {
  return quantile(self, scalar_q(self, q), dim, keepdim, interpolation);
}

Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_any("nanquantile", self, q, dim, keepdim, interpolation, true);
}

Tensor nanquantile_scalar(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                          std::string_view interpolation) {
  return nanquantile(self, scalar_q(self, q), dim, keepdim, interpolation);
}

} // namespace at::native
