// Operators over lists that are more than a loop over one operator, and what automatic loss scaling
// does to lists of gradients.
#include <ATen/native/foreach/Native.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sum.h>

#include <cmath>

namespace at::native {
namespace {
// The elements of a tensor of one number per list entry.
std::vector<Scalar> unpacked(const Tensor& scalars, size_t count) {
  TORCH_CHECK(scalars.is_cpu(), "Expected scalars to be on CPU, got ", scalars.device(),
              " instead.");
  TORCH_CHECK(scalars.is_contiguous(), "Expected scalars to be contiguous.");
  TORCH_CHECK(scalars.dim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ",
              scalars.dim(), " instead.");
  TORCH_CHECK(scalars.size(0) == static_cast<int64_t>(count),
              "Expected length of scalars to match input of length ", count, " but got ",
              scalars.size(0), " instead.");
  std::vector<Scalar> values;
  for (int64_t i = 0; i < scalars.size(0); ++i) values.push_back(scalars.select(0, i).item());
  return values;
}

bool holds_only_numbers(const Tensor& t) {
  return at::_ops::all::call(at::isfinite(t)).item<bool>();
}
} // namespace

std::vector<Tensor> foreach_addcmul_tensor(TensorList self, TensorList tensor1, TensorList tensor2,
                                           const Tensor& scalars) {
  return at::_foreach_addcmul(self, tensor1, tensor2, unpacked(scalars, self.size()));
}
void foreach_addcmul_tensor_(TensorList self, TensorList tensor1, TensorList tensor2,
                             const Tensor& scalars) {
  at::_foreach_addcmul_(self, tensor1, tensor2, unpacked(scalars, self.size()));
}
std::vector<Tensor> foreach_addcdiv_tensor(TensorList self, TensorList tensor1, TensorList tensor2,
                                           const Tensor& scalars) {
  return at::_foreach_addcdiv(self, tensor1, tensor2, unpacked(scalars, self.size()));
}
void foreach_addcdiv_tensor_(TensorList self, TensorList tensor1, TensorList tensor2,
                             const Tensor& scalars) {
  at::_foreach_addcdiv_(self, tensor1, tensor2, unpacked(scalars, self.size()));
}

std::vector<Tensor> foreach_powsum(TensorList self, const Scalar& ord,
                                   std::optional<ScalarType> dtype) {
  TORCH_CHECK(!self.empty(), "Tensor list must have at least one tensor.");
  std::vector<Tensor> sums;
  // An even power needs no absolute value.
  const bool even = !ord.isComplex() && std::fmod(ord.toDouble(), 2) == 0;
  for (const Tensor& t : self) {
    TORCH_CHECK(t.is_floating_point() || t.is_complex(),
                "_foreach_powsum: Expected a floating point or complex tensor as input. Got ",
                t.scalar_type());
    const Tensor base = even && !t.is_complex() ? t : at::abs(t);
    sums.push_back(at::_ops::sum::call(at::pow(base, ord), dtype));
  }
  return sums;
}

namespace {
void check_unscale(const Tensor& found_inf, const Tensor& inv_scale) {
  TORCH_CHECK(inv_scale.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(inv_scale.scalar_type() == kFloat, "inv_scale must be a float tensor.");
  TORCH_CHECK(found_inf.scalar_type() == kFloat, "found_inf must be a float tensor.");
}
void check_scale(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf) {
  TORCH_CHECK(growth_tracker.numel() == 1, "growth_tracker must be a 1-element tensor.");
  TORCH_CHECK(self.numel() == 1, "current_scale must be a 1-element tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(growth_tracker.scalar_type() == kInt, "growth_tracker must be an int tensor.");
  TORCH_CHECK(self.scalar_type() == kFloat, "current_scale must be a float tensor.");
  TORCH_CHECK(found_inf.scalar_type() == kFloat, "found_inf must be a float tensor.");
}
} // namespace

void amp_check_and_unscale_meta_(TensorList self, Tensor& found_inf, const Tensor& inv_scale) {
  check_unscale(found_inf, inv_scale);
  for (const Tensor& t : self) t.unsafeGetTensorImpl()->bump_version();
  found_inf.unsafeGetTensorImpl()->bump_version();
}
Tensor& amp_update_scale_meta_(Tensor& self, Tensor& growth_tracker, const Tensor& found_inf,
                               double /*scale_growth_factor*/, double /*scale_backoff_factor*/,
                               int64_t /*growth_interval*/) {
  check_scale(self, growth_tracker, found_inf);
  growth_tracker.unsafeGetTensorImpl()->bump_version();
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

void amp_check_and_unscale_(TensorList self, Tensor& found_inf, const Tensor& inv_scale) {
  check_unscale(found_inf, inv_scale);
  if (self.empty()) return;
  bool all_finite = true;
  for (const Tensor& t : self) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        t.is_floating_point(),
        "\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for '", t.scalar_type(),
        "'");
    all_finite = all_finite && holds_only_numbers(t);
  }
  if (!all_finite) found_inf.fill_(1);
  const double factor = inv_scale.item<double>();
  if (factor != 1) at::_foreach_mul_(self, Scalar(factor));
}

Tensor& amp_update_scale_(Tensor& self, Tensor& growth_tracker, const Tensor& found_inf,
                          double scale_growth_factor, double scale_backoff_factor,
                          int64_t growth_interval) {
  check_scale(self, growth_tracker, found_inf);
  if (found_inf.item<double>() != 0) {
    self.fill_(self.item<double>() * scale_backoff_factor);
    growth_tracker.fill_(0);
    return self;
  }
  const int64_t successes = growth_tracker.item<int64_t>() + 1;
  if (successes != growth_interval) {
    growth_tracker.fill_(successes);
    return self;
  }
  // A scale that would overflow stays as it is.
  const auto grown = static_cast<float>(self.item<double>() * scale_growth_factor);
  if (grown <= 3.402823466e38f) self.fill_(grown);
  growth_tracker.fill_(0);
  return self;
}

} // namespace at::native
