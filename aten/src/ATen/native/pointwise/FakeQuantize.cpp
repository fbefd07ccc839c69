// Rounding to the grid of a quantised type and back, for training that is aware of it. A value is
// scaled, rounded to even, limited and scaled back, all in float32 as PyTorch does; the mask says
// which values were within the limits, where the gradient passes.
#include <limits>

#include <ATen/native/pointwise/Native.h>
#include <ATen/ops/_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.h>
#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/fake_quantize_per_channel_affine_cachemask.h>
#include <ATen/ops/fake_quantize_per_tensor_affine_cachemask.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sub.h>

namespace at::native {
namespace {

void check_limits(const Tensor& self, int64_t quant_min, int64_t quant_max) {
  TORCH_CHECK(quant_min <= quant_max,
              "`quant_min` should be less than or         equal to `quant_max`.");
  TORCH_CHECK_NOT_IMPLEMENTED(
      self.is_floating_point(),
      "\"fake_quantize_tensor_cachemask_kernel_type_handling\" not implemented for '",
      self.scalar_type(), "'");
}

constexpr const char* kZeroPoint = "`zero_point` must be between `quant_min` and `quant_max`.";

ScalarType compute_type(const Tensor& self) {
  return self.scalar_type() == kDouble ? kDouble : kFloat;
}

// scale and zero_point broadcast against self and have float32 values. `product`: the type in which
// levels are scaled back.
std::tuple<Tensor, Tensor> quantized(const Tensor& self, const Tensor& scale,
                                     const Tensor& zero_point, int64_t low, int64_t high,
                                     ScalarType product) {
  const ScalarType dtype = self.scalar_type(), compute = compute_type(self);
  const Tensor zero = zero_point.to(compute);
  const Tensor scaled = at::round(at::mul(self.to(compute), at::reciprocal(scale).to(compute)));
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor level = at::nan_to_num(at::add(scaled, zero), -inf, inf, -inf);
  const Tensor mask = at::logical_and(at::ge(level, low), at::le(level, high));
  const Tensor steps = at::sub(at::clamp(level, low, high), zero);
  const Tensor output = at::mul(steps.to(product), scale.to(product));
  return {output.to(dtype), mask};
}

Tensor float_number(const Tensor& like, double value) {
  return at::scalar_tensor(value, like.options().dtype(kFloat));
}
} // namespace

Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point,
                                       int64_t quant_min, int64_t quant_max) {
  return std::get<0>(
      at::fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max));
}
Tensor fake_quantize_per_tensor_affine_qparams(const Tensor& self, const Tensor& scale,
                                               const Tensor& zero_point, int64_t quant_min,
                                               int64_t quant_max) {
  const Tensor enabled = at::ones({1}, self.options().dtype(kLong));
  return std::get<0>(at::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
      self, scale, zero_point, enabled, quant_min, quant_max));
}
Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale,
                                        const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                        int64_t quant_max) {
  return std::get<0>(at::fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis,
                                                                    quant_min, quant_max));
}

std::tuple<Tensor, Tensor>
fake_quantize_per_tensor_affine_cachemask(const Tensor& self, double scale, int64_t zero_point,
                                          int64_t quant_min, int64_t quant_max) {
  check_limits(self, quant_min, quant_max);
  TORCH_CHECK(quant_min <= zero_point && zero_point <= quant_max, kZeroPoint);
  return quantized(self, float_number(self, scale),
                   float_number(self, static_cast<double>(zero_point)), quant_min, quant_max,
                   kFloat);
}
std::tuple<Tensor, Tensor> _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    const Tensor& self, const Tensor& scale, const Tensor& zero_point,
    const Tensor& fake_quant_enabled, int64_t quant_min, int64_t quant_max) {
  check_limits(self, quant_min, quant_max);
  TORCH_CHECK(scale.numel() == 1 && zero_point.numel() == 1,
              "scale and zero_point should be tensors of one element");
  if (!fake_quant_enabled.is_meta() && fake_quant_enabled.item<int64_t>() == 0)
    return {self.clone(), at::ones_like(self, TensorOptions(kBool))};
  return quantized(self, scale.reshape({}), zero_point.reshape({}), quant_min, quant_max, kFloat);
}
std::tuple<Tensor, Tensor>
fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale,
                                           const Tensor& zero_point, int64_t axis,
                                           int64_t quant_min, int64_t quant_max) {
  const ScalarType of_scale = scale.scalar_type(), of_zero = zero_point.scalar_type();
  TORCH_CHECK(of_scale == kFloat || of_scale == kBFloat16,
              "Scale must be Float or BFloat16, found ", of_scale);
  TORCH_CHECK(of_zero == kInt || of_zero == kFloat || of_zero == kHalf,
              "Zero-point must be Int32, Float or Half, found ", of_zero);
  TORCH_CHECK(scale.dim() == 1, "scale should be a 1-D tensor");
  TORCH_CHECK(zero_point.dim() == 1, "zero point should be a 1-D tensor");
  TORCH_CHECK(scale.numel() == zero_point.numel(),
              "scale and zero-point need to have the same dimensions");
  TORCH_CHECK(scale.numel() == self.size(axis),
              "dimensions of scale and zero-point are not consistent with input tensor");
  check_limits(self, quant_min, quant_max);
  if (!zero_point.is_meta()) {
    const Tensor within =
        at::logical_and(at::ge(zero_point, quant_min), at::le(zero_point, quant_max));
    TORCH_CHECK(at::_ops::all::call(within).item<bool>(), kZeroPoint);
  }
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(axis < 0 ? axis + self.dim() : axis)] = scale.numel();
  return quantized(self, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max,
                   compute_type(self));
}

} // namespace at::native
