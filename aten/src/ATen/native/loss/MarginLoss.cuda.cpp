// Margin losses on CUDA, composed from other operators. Sums are kept in float for half types.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/MarginLoss.h>
#include <ATen/native/loss/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

namespace at::native {
namespace {

Tensor widened(const Tensor& t) {
  const ScalarType dtype = t.scalar_type();
  return dtype == kHalf || dtype == kBFloat16 ? t.to(kFloat) : t;
}
Tensor row_sums(const Tensor& t, bool keep = false) {
  const int64_t last = -1;
  return at::sum(t, IntArrayRef(&last, 1), keep);
}
double per_sample(const MarginBatch& batch, int64_t reduction) {
  const int64_t samples = reduction == kMeanReduction ? batch.samples : 1;
  return 1.0 / static_cast<double>(batch.classes * samples);
}
void check_grad(const Tensor& grad, const MarginBatch& batch, int64_t reduction, const char* name) {
  TORCH_CHECK(grad.numel() == (reduction == kNoReduction ? batch.samples : 1), name,
              ": grad_output of shape ", grad.sizes(), " does not fit the loss");
}
// By samples: rows of classes, or one number for each.
Tensor as_rows(const Tensor& t, const MarginBatch& batch) {
  return widened(t.contiguous().view({batch.samples, batch.classes}));
}
Tensor as_column(const Tensor& t) { return t.contiguous().view({t.numel(), 1}); }

// Margin minus the target's score plus each class's, where that is positive; else 0.
struct Distances {
  Distances(const MultiMargin& m, const Tensor& self) {
    target = as_column(m.classes);
    const Tensor x = as_rows(self, m.batch);
    const Tensor beyond = at::add(at::sub(x, at::gather(x, 1, target)), m.margin);
    z = at::scatter(at::clamp_min(beyond, 0), 1, target, 0);
    if (m.w.defined()) weight = at::index_select(m.w.to(x.scalar_type()), 0, m.classes.view({-1}));
  }
  Tensor target, z, weight; // weight: of each sample's class; may be undefined
};

} // namespace

Tensor multi_margin_loss_cuda(const Tensor& self, const Tensor& target, const Scalar& p,
                              const Scalar& margin, const std::optional<Tensor>& weight,
                              int64_t reduction) {
  cuda::check_same_device({&self, &target, cuda::given(weight)});
  const MultiMargin m(self, target, p, margin, weight);
  const Distances d(m, self);
  Tensor loss =
      at::div(row_sums(m.p == 1 ? d.z : at::mul(d.z, d.z)), static_cast<double>(m.batch.classes));
  if (d.weight.defined()) loss = at::mul(loss, d.weight);
  loss = loss.to(self.scalar_type());
  return apply_reduction(target.dim() > 0 ? loss : loss.reshape({}), reduction);
}

Tensor multi_margin_loss_backward_cuda(const Tensor& grad_output, const Tensor& self,
                                       const Tensor& target, const Scalar& p, const Scalar& margin,
                                       const std::optional<Tensor>& weight, int64_t reduction) {
  check_reduction(reduction);
  cuda::check_same_device({&self, &grad_output, &target, cuda::given(weight)});
  const MultiMargin m(self, target, p, margin, weight);
  check_grad(grad_output, m.batch, reduction, "multi_margin_loss_backward");
  const Distances d(m, self);
  Tensor factor = at::mul(as_column(widened(grad_output)), per_sample(m.batch, reduction));
  if (d.weight.defined()) factor = at::mul(factor, as_column(d.weight));
  const Tensor slope = m.p == 1 ? at::gt(d.z, 0).to(d.z.scalar_type()) : at::mul(d.z, 2);
  const Tensor others = at::mul(slope, factor);
  const Tensor grad = at::scatter(others, 1, d.target, at::neg(row_sums(others, true)));
  return grad.to(self.scalar_type()).view(self.sizes());
}

// ---- several target classes ---------------------------------------------------------------------
namespace {

// Pairs of a target and a class that is none.
struct Pairs {
  Pairs(const Tensor& self, const Tensor& target) {
    batch = margin_batch(self);
    const Tensor t = target.contiguous().view({batch.samples, batch.classes});
    // Targets stand before the first -1.
    valid = at::cumprod(at::ne(t, -1).to(kLong), 1);
    place = at::mul(t, valid);
    const Tensor none =
        at::zeros({batch.samples, batch.classes}, TensorOptions(kLong).device(self.device()));
    marks = at::gt(at::scatter_add(none, 1, place, valid), 0);
    const Tensor x = as_rows(self, batch);
    const Tensor own = at::gather(x, 1, place);
    const Tensor beyond = at::add(at::sub(x.unsqueeze(1), own.unsqueeze(2)), 1);
    const Tensor counted = at::mul(valid.unsqueeze(2), at::eq(marks, false).unsqueeze(1));
    z = at::mul(at::clamp_min(beyond, 0), counted.to(x.scalar_type()));
  }
  MarginBatch batch;
  Tensor valid, place, marks, z; // z: samples x targets x classes
};

} // namespace

std::tuple<Tensor, Tensor>
multilabel_margin_loss_forward_cuda(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_multilabel(self, target);
  cuda::check_same_device({&self, &target});
  const Pairs p(self, target);
  Tensor loss = at::div(row_sums(row_sums(p.z)), static_cast<double>(p.batch.classes));
  loss = loss.to(self.scalar_type());
  const Tensor marks = p.marks.to(self.scalar_type()).view(target.sizes());
  return {apply_reduction(self.dim() == 2 ? loss : loss.reshape({}), reduction), marks};
}

Tensor multilabel_margin_loss_backward_cuda(const Tensor& grad_output, const Tensor& self,
                                            const Tensor& target, int64_t reduction,
                                            const Tensor& is_target) {
  check_multilabel(self, target);
  check_reduction(reduction);
  cuda::check_same_device({&self, &grad_output, &target});
  TORCH_CHECK(is_target.sizes() == target.sizes(),
              "inconsistent is_target size: ", is_target.sizes());
  const Pairs p(self, target);
  check_grad(grad_output, p.batch, reduction, "multilabel_margin_loss_backward");
  const Tensor factor = at::mul(as_column(widened(grad_output)), per_sample(p.batch, reduction));
  const Tensor above = at::gt(p.z, 0).to(p.z.scalar_type());
  const int64_t targets = 1;
  const Tensor to_classes = at::sum(above, IntArrayRef(&targets, 1));
  const Tensor grad = at::scatter_add(to_classes, 1, p.place, at::neg(row_sums(above)));
  return at::mul(grad, factor).to(self.scalar_type()).view(self.sizes());
}

} // namespace at::native
