// nll_loss for any number of dimensions, and cross entropy on top of log_softmax: for class
// indices, for class probabilities, and with label smoothing.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/SymbolicTensor.h>
#include <ATen/core/TransformQueries.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/Native.h>
#include <ATen/ops/_cross_entropy_rows.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bitwise_not.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/nll_loss2d.h>
#include <ATen/ops/nll_loss2d_forward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/sum.h>

namespace at::native {
namespace {
bool has(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }

// The class weights, shaped to multiply `input`.
Tensor along_classes(const Tensor& weight, const Tensor& input) {
  DimVector shape(static_cast<size_t>(input.dim()), 1);
  shape[input.dim() == 1 ? 0 : 1] = weight.size(0);
  return weight.view(shape);
}

Tensor probability_loss(const Tensor& self, const Tensor& target,
                        const std::optional<Tensor>& weight, int64_t reduction, double smoothing) {
  const int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const int64_t classes = self.size(class_dim);
  TORCH_CHECK(!has(weight) || (weight->dim() == 1 && weight->numel() == classes),
              "cross_entropy: weight tensor should be defined either for all ", classes,
              " classes or no classes but got weight tensor of shape: ",
              has(weight) ? weight->sizes() : IntArrayRef());
  const Tensor log_p = at::log_softmax(self, class_dim, self.scalar_type());
  Tensor t = target;
  if (smoothing > 0)
    t = at::add(at::mul(t, 1 - smoothing), smoothing / static_cast<double>(classes));
  Tensor product = at::mul(log_p, t);
  if (has(weight)) product = at::mul(product, along_classes(*weight, self));
  check_reduction(reduction);
  if (reduction == kNoReduction) return at::neg(at::sum(product, IntArrayRef(&class_dim, 1)));
  const Tensor total = at::neg(at::sum(product));
  if (reduction == kSumReduction) return total;
  return at::div(total, static_cast<double>(self.numel() / (classes > 0 ? classes : 1)));
}

// A half type on a GPU while autocast is on: the loss is then computed, and given, in float32.
bool is_autocast_half(const Tensor& self) {
  const ScalarType dtype = self.scalar_type();
  const auto key = c10::DispatchKeySet(c10::DispatchKey::AutocastCUDA).raw();
  return self.is_cuda() && (dtype == kHalf || dtype == kBFloat16) &&
         (c10::tls_dispatch_keys.included & key) != 0;
}

// Whether CUDA's kernel for a matrix of scores computes exactly this call; any other, also one that
// is in error, goes through the operators below.
// Whoever traces fakes wants the operators that the fused one stands for, unless he says otherwise.
bool fits_rows(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight) {
  const bool is_shown = !self.key_set().has(DispatchKey::Fake) && self.has_storage();
  if (!self.is_cuda() || !(is_shown || records_whole_operators()) || !self.is_floating_point() ||
      self.dim() != 2 || target.dim() != 1 || target.scalar_type() != kLong ||
      target.device() != self.device() || functorch::is_differentiated_twice(self))
    return false;
  const SymInt rows = self.sym_size(0), classes = self.sym_size(1);
  const auto holds = [](c10::SymBool b) { return c10::guard_or_false(b); };
  return holds(c10::sym_gt(rows, 0)) && holds(c10::sym_gt(classes, 0)) &&
         holds(c10::sym_eq(target.sym_size(0), rows)) &&
         (!has(weight) || (weight->dim() == 1 && weight->scalar_type() == self.scalar_type() &&
                           holds(c10::sym_eq(weight->sym_size(0), classes))));
}

// The part of label smoothing that is the same for every class: the mean loss over all classes.
Tensor smooth_loss(const Tensor& log_p, const Tensor& target, const std::optional<Tensor>& weight,
                   int64_t reduction, int64_t ignore_index) {
  const int64_t class_dim = log_p.dim() == 1 ? 0 : 1;
  const Tensor scaled = has(weight) ? at::mul(log_p, along_classes(*weight, log_p)) : log_p;
  Tensor each = at::neg(at::sum(scaled, IntArrayRef(&class_dim, 1)));
  const Tensor ignored = at::eq(target, ignore_index);
  each = at::_ops::masked_fill__Scalar::call(each, ignored, 0.0);
  check_reduction(reduction);
  if (reduction == kNoReduction) return each;
  if (reduction == kMeanReduction && !has(weight) && handlers_active()) {
    const Tensor kept = at::bitwise_not(ignored); // as handlers know it
    const Tensor total = at::sum(each);
    return at::div(total, at::sum(kept));
  }
  const Tensor total = at::sum(each);
  if (reduction == kSumReduction) return total;
  if (!has(weight)) return at::div(total, at::sum(at::eq(ignored, false)));
  const Tensor classes = at::masked_fill(target, ignored, 0).flatten();
  const Tensor weights = at::masked_fill(at::gather(*weight, 0, classes), ignored.flatten(), 0.0);
  return at::div(total, at::sum(weights));
}
} // namespace

Tensor nll_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                int64_t reduction, int64_t ignore_index) {
  return std::get<0>(at::nll_loss_forward(self, target, weight, reduction, ignore_index));
}
Tensor nll_loss2d(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                  int64_t reduction, int64_t ignore_index) {
  return std::get<0>(at::nll_loss2d_forward(self, target, weight, reduction, ignore_index));
}

Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                   int64_t reduction, int64_t ignore_index) {
  TORCH_CHECK_VALUE(self.dim() >= 1, "Expected 1 or more dimensions (got ", self.dim(), ")");
  TORCH_CHECK_VALUE(
      self.dim() == 1 ||
          (target.dim() > 0 && c10::expect_true(c10::sym_eq(self.sym_size(0), target.sym_size(0)))),
      "Expected input batch_size (", self.sym_size(0), ") to match target batch_size (",
      target.dim() > 0 ? target.sym_size(0) : SymInt(0), ").");
  if (self.dim() <= 2) return at::nll_loss(self, target, weight, reduction, ignore_index);
  if (self.dim() == 4) return at::nll_loss2d(self, target, weight, reduction, ignore_index);
  // Everything after the classes becomes one row of an image.
  DimVector expected(self.sizes().begin(), self.sizes().end());
  expected.erase(expected.begin() + 1);
  TORCH_CHECK(target.sizes() == IntArrayRef(expected), "Expected target size ",
              IntArrayRef(expected), ", got ", target.sizes());
  int64_t inner = 1;
  for (size_t d = 1; d < expected.size(); ++d) inner *= expected[d];
  const int64_t n = self.size(0), c = self.size(1);
  const Tensor loss = at::nll_loss2d(self.reshape({n, c, 1, inner}), target.reshape({n, 1, inner}),
                                     weight, reduction, ignore_index);
  return reduction == kNoReduction ? loss.view(expected) : loss;
}

std::tuple<Tensor, Tensor, Tensor>
cross_entropy_rows_meta(const Tensor& self, const Tensor& /*target*/,
                        const std::optional<Tensor>& /*weight*/, int64_t reduction,
                        int64_t /*ignore_index*/, bool float_output) {
  const ScalarType dtype = self.scalar_type(), wide = dtype == kDouble ? kDouble : kFloat;
  const Device meta(kMeta);
  const SymIntArrayRef rows = self.sym_sizes().slice(0, 1);
  return {detail::empty_symint(reduction == kNoReduction ? rows : SymIntArrayRef(),
                               float_output ? wide : dtype, meta),
          detail::empty_symint(rows, wide, meta), detail::empty({}, wide, meta)};
}
Tensor cross_entropy_rows_backward_meta(const Tensor& /*grad_output*/, const Tensor& self,
                                        const Tensor& /*target*/,
                                        const std::optional<Tensor>& /*weight*/,
                                        int64_t /*reduction*/, int64_t /*ignore_index*/,
                                        const Tensor& /*log_sums*/,
                                        const Tensor& /*total_weight*/) {
  return detail::empty_symint(self.sym_sizes(), self.scalar_type(), Device(kMeta));
}

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target,
                          const std::optional<Tensor>& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  TORCH_CHECK(label_smoothing >= 0 && label_smoothing <= 1,
              "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  TORCH_CHECK_VALUE(self.dim() >= 1, "Expected 1 or more dimensions (got ", self.dim(), ")");
  if (self.dim() == target.dim() && self.sym_sizes() == target.sym_sizes()) {
    TORCH_CHECK(target.is_floating_point(),
                "Expected floating point type for target with class probabilities, got ",
                target.scalar_type());
    TORCH_CHECK(ignore_index < 0, "ignore_index is not supported for floating point target");
    return probability_loss(self, target, weight, reduction, label_smoothing);
  }
  if (label_smoothing == 0 && reduction >= kNoReduction && reduction <= kSumReduction &&
      fits_rows(self, target, weight))
    return std::get<0>(at::_cross_entropy_rows(self, target, weight, reduction, ignore_index,
                                               is_autocast_half(self)));
  if (is_autocast_half(self)) {
    const auto widened = [](const Tensor& t) { return t.is_floating_point() ? t.to(kFloat) : t; };
    std::optional<Tensor> scale;
    if (has(weight)) scale = widened(*weight);
    return cross_entropy_loss(widened(self), widened(target), scale, reduction, ignore_index,
                              label_smoothing);
  }
  const int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const Tensor log_p = at::log_softmax(self, class_dim, self.scalar_type());
  const Tensor loss = at::nll_loss_nd(log_p, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return loss;
  const Tensor smooth = smooth_loss(log_p, target, weight, reduction, ignore_index);
  const double share = label_smoothing / static_cast<double>(self.size(class_dim));
  if (handlers_active()) {
    const Tensor first = at::mul(loss, 1 - label_smoothing);
    return at::add(first, at::mul(smooth, share));
  }
  return at::add(at::mul(loss, 1 - label_smoothing), smooth, share);
}
} // namespace at::native
