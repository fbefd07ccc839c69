// Losses of one input and one target element each, followed by the reduction. The gradient of a
// mean is the gradient of the sum with the factor 1/n, which goes into the elementwise loop.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/PointwisePrograms.h>
#include <ATen/iter/Pointwise.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/loss/LossTables.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

namespace at::native {
namespace {
using iter::PointwiseSpec;
using iter::Promote;

#ifdef CRESSET_HAVE_X86_ISA
#define CRESSET_LOSS_TABLE(Name)                                                                   \
  constexpr const LoopTable* tables_##Name[3] = {&base::loss_##Name, &avx2::loss_##Name,           \
                                                 &avx512::loss_##Name};
#else
#define CRESSET_LOSS_TABLE(Name)                                                                   \
  constexpr const LoopTable* tables_##Name[3] = {&base::loss_##Name, &base::loss_##Name,           \
                                                 &base::loss_##Name};
#endif
CRESSET_FORALL_LOSS_TABLES(CRESSET_LOSS_TABLE)
#undef CRESSET_LOSS_TABLE

// The loops, and the functor's CUDA program.
#define CRESSET_SPEC(name, functor, inputs, params)                                                \
  PointwiseSpec {                                                                                  \
    name, tables_##functor, inputs, params, OutKind::Same, Promote::Default,                       \
        &cuda::loops_##functor##_##inputs##_##params                                               \
  }
constexpr PointwiseSpec kMse = CRESSET_SPEC("mse", Mse, 2, 0);
constexpr PointwiseSpec kMseBackward = CRESSET_SPEC("mse_backward", MseBackward, 3, 1);
constexpr PointwiseSpec kSmoothL1 = CRESSET_SPEC("smooth_l1", SmoothL1, 2, 1);
constexpr PointwiseSpec kSmoothL1Backward =
    CRESSET_SPEC("smooth_l1_backward", SmoothL1Backward, 3, 2);
constexpr PointwiseSpec kHuber = CRESSET_SPEC("huber", Huber, 2, 1);
constexpr PointwiseSpec kHuberBackward = CRESSET_SPEC("huber_backward", HuberBackward, 3, 2);
constexpr PointwiseSpec kSoftMargin = CRESSET_SPEC("soft_margin", SoftMargin, 2, 0);
constexpr PointwiseSpec kSoftMarginBackward =
    CRESSET_SPEC("soft_margin_backward", SoftMarginBackward, 3, 1);
constexpr PointwiseSpec kBce = CRESSET_SPEC("binary_cross_entropy", Bce, 2, 0);
constexpr PointwiseSpec kBceBackward =
    CRESSET_SPEC("binary_cross_entropy_backward", BceBackward, 3, 0);
constexpr PointwiseSpec kBceLogits =
    CRESSET_SPEC("binary_cross_entropy_with_logits", BceLogits, 2, 0);
constexpr PointwiseSpec kBceLogitsWeighted =
    CRESSET_SPEC("binary_cross_entropy_with_logits", BceLogitsWeighted, 3, 0);
#undef CRESSET_SPEC

double reduction_factor(int64_t reduction, const Tensor& input) {
  check_reduction(reduction);
  return reduction == kMeanReduction ? 1.0 / static_cast<double>(input.numel()) : 1.0;
}
// The mean is one over the elements of what both broadcast to.
double reduction_factor(int64_t reduction, const Tensor& input, const Tensor& target) {
  if (reduction != kMeanReduction || input.sizes() == target.sizes())
    return reduction_factor(reduction, input);
  const DimVector shape = broadcast_shapes(input.sizes(), target.sizes());
  return 1.0 / static_cast<double>(c10::checked_numel(shape));
}
bool has(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }

Tensor weighted(const Tensor& loss, const std::optional<Tensor>& weight, int64_t reduction) {
  return apply_reduction(has(weight) ? at::mul(loss, *weight) : loss, reduction);
}

// True when every element lies in [0, 1]; NaN does not.
bool all_probabilities(const Tensor& input) {
  const Tensor x = input.contiguous();
  bool good = true;
  dtype_switch<FloatingTypes>(x.scalar_type(), "binary_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = static_cast<const T*>(x.const_data_ptr());
    const T zero = static_cast<T>(0.0f), one = static_cast<T>(1.0f);
    int outside = 0;
    for (int64_t i = 0, n = x.numel(); i < n; ++i) outside |= !(p[i] >= zero) | !(p[i] <= one);
    good = outside == 0;
  });
  return good;
}
// Sizes without those that are 1.
DimVector squeezed(IntArrayRef sizes) {
  DimVector out;
  for (int64_t size : sizes)
    if (size != 1) out.push_back(size);
  return out;
}
// The target in the shape of the input. Both may differ in dimensions of size 1.
Tensor bce_target(const Tensor& self, const Tensor& target) {
  TORCH_CHECK(self.scalar_type() == target.scalar_type(), "Found dtype ", target.scalar_type(),
              " but expected ", self.scalar_type());
  if (self.sizes() == target.sizes()) return target;
  TORCH_CHECK(squeezed(self.sizes()) == squeezed(target.sizes()),
              "binary_cross_entropy: expected target to have the shape of the input, ",
              self.sizes(), ", but got ", target.sizes());
  return at::reshape(target, self.sizes());
}
} // namespace

void check_reduction(int64_t reduction) {
  TORCH_CHECK(reduction >= kNoReduction && reduction <= kSumReduction,
              "expected reduction to be 0 (none), 1 (mean) or 2 (sum), but got ", reduction);
}
Tensor apply_reduction(const Tensor& loss, int64_t reduction) {
  check_reduction(reduction);
  if (reduction == kMeanReduction) return at::mean(loss);
  if (reduction == kSumReduction) return at::sum(loss);
  return loss;
}

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return apply_reduction(iter::pointwise(kMse, {self, target}), reduction);
}
Tensor mse_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         int64_t reduction) {
  const Scalar norm = 2 * reduction_factor(reduction, self, target);
  return iter::pointwise(kMseBackward, {grad_output, self, target}, {&norm});
}

Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  TORCH_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  const Scalar value = beta;
  return apply_reduction(iter::pointwise(kSmoothL1, {self, target}, {&value}), reduction);
}
Tensor smooth_l1_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                               int64_t reduction, double beta) {
  const Scalar value = beta, norm = reduction_factor(reduction, self, target);
  return iter::pointwise(kSmoothL1Backward, {grad_output, self, target}, {&value, &norm});
}

Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  const Scalar value = delta;
  return apply_reduction(iter::pointwise(kHuber, {self, target}, {&value}), reduction);
}
Tensor huber_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           int64_t reduction, double delta) {
  const Scalar value = delta, norm = reduction_factor(reduction, self, target);
  return iter::pointwise(kHuberBackward, {grad_output, self, target}, {&value, &norm});
}

// Half precision rounds after every step, as programs that were trained in it expect.
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  if (c10::isReducedFloatingType(self.scalar_type())) {
    const Tensor loss = at::log1p(at::exp(at::mul(at::neg(target), self)));
    return apply_reduction(loss, reduction);
  }
  return apply_reduction(iter::pointwise(kSoftMargin, {self, target}), reduction);
}
Tensor soft_margin_loss_backward(const Tensor& grad_output, const Tensor& self,
                                 const Tensor& target, int64_t reduction) {
  const Scalar norm = reduction_factor(reduction, self, target);
  return iter::pointwise(kSoftMarginBackward, {grad_output, self, target}, {&norm});
}

// Where the values are not at hand: on CUDA the kernel reports bad ones, and the next call that
// waits for it raises.
Tensor binary_cross_entropy_unchecked(const Tensor& self, const Tensor& target,
                                      const std::optional<Tensor>& weight, int64_t reduction) {
  const Tensor aim = bce_target(self, target);
  return weighted(iter::pointwise(kBce, {self, aim}), weight, reduction);
}
Tensor binary_cross_entropy_cpu(const Tensor& self, const Tensor& target,
                                const std::optional<Tensor>& weight, int64_t reduction) {
  const Tensor aim = bce_target(self, target);
  TORCH_CHECK(all_probabilities(self), "all elements of input should be between 0 and 1");
  TORCH_CHECK(all_probabilities(aim), "all elements of target should be between 0 and 1");
  return weighted(iter::pointwise(kBce, {self, aim}), weight, reduction);
}
Tensor binary_cross_entropy_backward(const Tensor& grad_output, const Tensor& self,
                                     const Tensor& target, const std::optional<Tensor>& weight,
                                     int64_t reduction) {
  const Tensor aim = bce_target(self, target);
  Tensor grad = iter::pointwise(kBceBackward, {grad_output, self, aim});
  if (has(weight)) grad = at::mul(grad, *weight);
  const double factor = reduction_factor(reduction, self);
  return reduction == kMeanReduction ? at::mul(grad, factor) : grad;
}

namespace {
// (1 - target) * self - weight * log_sigmoid(self), rounded after every step.
Tensor logits_loss_in_steps(const Tensor& self, const Tensor& target,
                            const std::optional<Tensor>& pos_weight) {
  const Tensor logs = at::log_sigmoid(self);
  const Tensor first = at::mul(at::rsub(target, 1), self);
  if (!has(pos_weight)) return at::sub(first, logs);
  const Tensor factor = at::add(at::mul(at::sub(*pos_weight, 1), target), 1);
  return at::sub(first, at::mul(factor, logs));
}
} // namespace
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const std::optional<Tensor>& weight,
                                        const std::optional<Tensor>& pos_weight,
                                        int64_t reduction) {
  if (c10::isReducedFloatingType(self.scalar_type()))
    return weighted(logits_loss_in_steps(self, target, pos_weight), weight, reduction);
  const Tensor loss = has(pos_weight)
                          ? iter::pointwise(kBceLogitsWeighted, {self, target, *pos_weight})
                          : iter::pointwise(kBceLogits, {self, target});
  return weighted(loss, weight, reduction);
}
} // namespace at::native
