// The arguments of the margin losses, checked, for the kernels of all devices. A vector is a batch
// of one.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace at::native {

struct MarginBatch {
  int64_t samples, classes;
};
inline MarginBatch margin_batch(const Tensor& self) {
  const bool good = self.dim() <= 2 && (self.dim() < 1 || self.size(-1) > 0);
  TORCH_CHECK(good, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
              self.sizes());
  if (self.dim() == 0) return {1, 1};
  return self.dim() == 1 ? MarginBatch{1, self.size(0)} : MarginBatch{self.size(0), self.size(1)};
}

struct MultiMargin {
  MultiMargin(const Tensor& self, const Tensor& target, const Scalar& power, const Scalar& distance,
              const std::optional<Tensor>& weight)
      : batch(margin_batch(self)), p(power.toLong()), margin(distance.toDouble()) {
    TORCH_CHECK(power.toDouble() == 1 || power.toDouble() == 2, "only p == 1 and p == 2 supported");
    TORCH_CHECK(target.dim() <= 1 && target.numel() == batch.samples,
                "multi_margin_loss: target tensor should be 1-D with size equal to the number of "
                "input samples (batch "
                "size). Expected target size [",
                batch.samples, "], but got ", target.sizes(), ". Input has shape ", self.sizes(),
                ".");
    const bool weighted = weight && weight->defined();
    TORCH_CHECK(!weighted || (weight->dim() <= 1 && weight->numel() == batch.classes),
                "inconsistent weight size, expected ", batch.classes, " but got ",
                weighted ? weight->sizes() : IntArrayRef());
    TORCH_CHECK(target.scalar_type() == kLong, "expected scalar type Long but found ",
                target.scalar_type());
    x = self.contiguous();
    classes = target.contiguous();
    if (weighted) w = weight->to(kDouble).contiguous();
  }
  int64_t target(int64_t n) const {
    const int64_t t = static_cast<const int64_t*>(classes.const_data_ptr())[n];
    TORCH_CHECK(t >= 0 && t < batch.classes, "target out of range");
    return t;
  }
  double weight(int64_t c) const {
    return w.defined() ? static_cast<const double*>(w.const_data_ptr())[c] : 1.0;
  }
  MarginBatch batch;
  int64_t p;
  double margin;
  Tensor x, classes, w;
};

inline void check_multilabel(const Tensor& self, const Tensor& target) {
  margin_batch(self);
  TORCH_CHECK(self.sizes() == target.sizes() || (self.dim() == 0 && target.numel() == 1),
              "inconsistent target size: ", target.sizes(), " for input of size: ", self.sizes());
  TORCH_CHECK(target.scalar_type() == kLong, "expected scalar type Long but found ",
              target.scalar_type());
}

} // namespace at::native
