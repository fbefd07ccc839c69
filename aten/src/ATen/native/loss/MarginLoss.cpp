// Margin losses over classes: multi_margin_loss (one target class for each sample) and
// multilabel_margin_loss (a list of target classes that ends with -1). Written as plain loops over
// the classes of one sample; a vector is a batch of one.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/MarginLoss.h>
#include <ATen/native/loss/Native.h>
#include <ATen/ops/multilabel_margin_loss_forward.h>
#include <ATen/parallel/Stretches.h>

namespace at::native {
namespace {
double term(double z, int64_t p) { return p == 1 ? z : z * z; }

// The sum of term(x[c] + offset) over what is above 0, of n elements, without a branch on the data.
template <class T> double sum_above_zero(const T* x, int64_t n, double offset, int64_t p) {
  constexpr int64_t kSums = 4;
  double sums[kSums] = {};
  const auto add = [&](int64_t c, int64_t k) {
    const double z = static_cast<double>(x[c]) + offset;
    sums[k] += z > 0 ? term(z, p) : 0.0;
  };
  serial_for(0, n / kSums, kSums, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin * kSums; c < end * kSums; c += kSums)
      for (int64_t k = 0; k < kSums; ++k) add(c + k, k);
  });
  for (int64_t c = n / kSums * kSums; c < n; ++c) add(c, 0);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

} // namespace

Tensor multi_margin_loss_cpu(const Tensor& self, const Tensor& target, const Scalar& p,
                             const Scalar& margin, const std::optional<Tensor>& weight,
                             int64_t reduction) {
  const MultiMargin m(self, target, p, margin, weight);
  const MarginBatch batch = m.batch;
  DimVector sizes;
  if (target.dim() > 0) sizes.push_back(batch.samples);
  const Tensor loss = at::detail::empty(sizes, self.scalar_type(), self.device());
  if (loss.is_meta()) return apply_reduction(loss, reduction);
  dtype_switch<FloatingTypes>(self.scalar_type(), "multi_margin_loss", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(m.x.const_data_ptr());
    T* out = static_cast<T*>(loss.mutable_data_ptr());
    Steps steps;
    for (int64_t n = 0; n < batch.samples; ++n, x += batch.classes) {
      steps.add(batch.classes);
      const int64_t t = m.target(n);
      const double offset = m.margin - static_cast<double>(x[t]);
      const double sum = sum_above_zero(x, t, offset, m.p) +
                         sum_above_zero(x + t + 1, batch.classes - t - 1, offset, m.p);
      out[n] = static_cast<T>(m.weight(t) * sum / static_cast<double>(batch.classes));
    }
  });
  return apply_reduction(loss, reduction);
}

Tensor multi_margin_loss_backward_cpu(const Tensor& grad_output, const Tensor& self,
                                      const Tensor& target, const Scalar& p, const Scalar& margin,
                                      const std::optional<Tensor>& weight, int64_t reduction) {
  check_reduction(reduction);
  const MultiMargin m(self, target, p, margin, weight);
  const MarginBatch batch = m.batch;
  const Tensor grad = at::detail::empty(self.sizes(), self.scalar_type(), self.device());
  if (grad.is_meta()) return grad;
  const Tensor incoming = grad_output.to(kDouble).contiguous();
  TORCH_CHECK(incoming.numel() == (reduction == kNoReduction ? batch.samples : 1),
              "multi_margin_loss_backward: grad_output of shape ", grad_output.sizes(),
              " does not fit the loss");
  dtype_switch<FloatingTypes>(self.scalar_type(), "multi_margin_loss_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(m.x.const_data_ptr());
    T* out = static_cast<T*>(grad.mutable_data_ptr());
    const double* g = static_cast<const double*>(incoming.const_data_ptr());
    const double norm =
        1.0 /
        static_cast<double>(batch.classes * (reduction == kMeanReduction ? batch.samples : 1));
    Steps steps;
    for (int64_t n = 0; n < batch.samples; ++n, x += batch.classes, out += batch.classes) {
      const int64_t t = m.target(n);
      const double scale = norm * m.weight(t) * g[reduction == kNoReduction ? n : 0];
      double sum = 0;
      for (int64_t c = 0; c < batch.classes; ++c) {
        steps.add(4);
        const double z = m.margin - static_cast<double>(x[t]) + static_cast<double>(x[c]);
        const double d = c != t && z > 0 ? scale * (m.p == 1 ? 1.0 : 2 * z) : 0.0;
        sum += d;
        out[c] = static_cast<T>(d);
      }
      out[t] = static_cast<T>(-sum);
    }
  });
  return grad;
}

// ---- several target classes ---------------------------------------------------------------------
namespace {
// The targets of a row: how many precede the first -1. Every one is checked.
int64_t target_count(const int64_t* t, int64_t classes) {
  int64_t count = -1;
  for (int64_t i = 0; i < classes; ++i) {
    TORCH_CHECK(t[i] >= -1 && t[i] < classes, "argument #2 'target' is out of range");
    if (t[i] == -1 && count < 0) count = i;
  }
  return count < 0 ? classes : count;
}
} // namespace

Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return std::get<0>(at::multilabel_margin_loss_forward(self, target, reduction));
}

std::tuple<Tensor, Tensor>
multilabel_margin_loss_forward_cpu(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_multilabel(self, target);
  const MarginBatch batch = margin_batch(self);
  const Tensor x = self.contiguous(), t = long_copy(target);
  const Tensor is_target = at::detail::empty(target.sizes(), self.scalar_type(), self.device());
  is_target.zero_();
  DimVector sizes;
  if (self.dim() == 2) sizes.push_back(batch.samples);
  const Tensor loss = at::detail::empty(sizes, self.scalar_type(), self.device());
  if (loss.is_meta()) return {apply_reduction(loss, reduction), is_target};
  dtype_switch<FloatingTypes>(
      self.scalar_type(), "multilabel_margin_loss_forward_out_frame", [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* xp = static_cast<const T*>(x.const_data_ptr());
        const int64_t* tp = static_cast<const int64_t*>(t.const_data_ptr());
        T* mark = static_cast<T*>(is_target.mutable_data_ptr());
        T* out = static_cast<T*>(loss.mutable_data_ptr());
        const T one = static_cast<T>(1.0f);
        for (int64_t n = 0; n < batch.samples;
             ++n, xp += batch.classes, tp += batch.classes, mark += batch.classes) {
          const int64_t count = target_count(tp, batch.classes);
          for (int64_t i = 0; i < count; ++i) mark[tp[i]] = one;
          double sum = 0;
          for (int64_t i = 0; i < count; ++i) {
            check_interrupt(); // the work is quadratic
            for (int64_t c = 0; c < batch.classes; ++c) {
              const double z = 1 - static_cast<double>(xp[tp[i]]) + static_cast<double>(xp[c]);
              if (mark[c] != one && z > 0) sum += z;
            }
          }
          out[n] = static_cast<T>(sum / static_cast<double>(batch.classes));
        }
      });
  return {apply_reduction(loss, reduction), is_target};
}

Tensor multilabel_margin_loss_backward_cpu(const Tensor& grad_output, const Tensor& self,
                                           const Tensor& target, int64_t reduction,
                                           const Tensor& is_target) {
  check_multilabel(self, target);
  check_reduction(reduction);
  TORCH_CHECK(is_target.sizes() == target.sizes(),
              "inconsistent is_target size: ", is_target.sizes());
  const MarginBatch batch = margin_batch(self);
  const Tensor x = self.contiguous(), t = long_copy(target),
               marks = is_target.to(self.scalar_type()).contiguous();
  if (self.is_meta()) return at::detail::empty(self.sizes(), self.scalar_type(), self.device());
  const Tensor grad = at::detail::empty(self.sizes(), kDouble);
  grad.zero_();
  const Tensor incoming = grad_output.to(kDouble).contiguous();
  TORCH_CHECK(incoming.numel() == (reduction == kNoReduction ? batch.samples : 1),
              "multilabel_margin_loss_backward: grad_output of shape ", grad_output.sizes(),
              " does not fit the loss");
  dtype_switch<FloatingTypes>(
      self.scalar_type(), "multilabel_margin_loss_backward_out_frame", [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* xp = static_cast<const T*>(x.const_data_ptr());
        const T* mark = static_cast<const T*>(marks.const_data_ptr());
        const int64_t* tp = static_cast<const int64_t*>(t.const_data_ptr());
        const double* g = static_cast<const double*>(incoming.const_data_ptr());
        double* out = static_cast<double*>(grad.mutable_data_ptr());
        const double norm =
            1.0 /
            static_cast<double>(batch.classes * (reduction == kMeanReduction ? batch.samples : 1));
        for (int64_t n = 0; n < batch.samples; ++n, xp += batch.classes, tp += batch.classes,
                     mark += batch.classes, out += batch.classes) {
          const double scale = norm * g[reduction == kNoReduction ? n : 0];
          const int64_t count = target_count(tp, batch.classes);
          for (int64_t i = 0; i < count; ++i) {
            check_interrupt(); // the work is quadratic
            for (int64_t c = 0; c < batch.classes; ++c) {
              const double z = 1 - static_cast<double>(xp[tp[i]]) + static_cast<double>(xp[c]);
              if (static_cast<double>(mark[c]) != 0 || z <= 0) continue;
              out[tp[i]] -= scale;
              out[c] += scale;
            }
          }
        }
      });
  return grad.to(self.scalar_type());
}
} // namespace at::native
