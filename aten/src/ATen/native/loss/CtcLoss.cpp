// Connectionist temporal classification: the likelihood of a label sequence under all its
// alignments to the input frames. The labels, with a blank before, between and after them, are the
// states of a chain; alpha[t][s] is the log-likelihood of frames 0..t ending in state s, beta[t][s]
// that of frames t.. from it. Samples are independent and shared between threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/loss/CtcBatch.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/Native.h>
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mean.h>
#include <ATen/parallel/Stretches.h>

namespace at::native {
namespace {
using Batch = CtcBatch;
constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// log(e^a + e^b), and of three.
double log_add(double a, double b) {
  const double top = std::max(a, b);
  return top == kImpossible ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}
double log_add(double a, double b, double c) { return log_add(log_add(a, b), c); }

std::vector<int64_t> lengths_of(const char* name, const Tensor& lengths) {
  TORCH_CHECK(c10::isIntegralType(lengths.scalar_type(), false), name, " must be integral");
  if (lengths.key_set().has(DispatchKey::Meta)) { // a fake tensor refuses
    std::vector<int64_t> known;
    for (int64_t i = 0; i < lengths.numel(); ++i)
      known.push_back(lengths.select(0, i).item<int64_t>());
    return known;
  }
  const Tensor t = at::detail::empty(lengths.sizes(), kLong); // on the CPU, wherever they come from
  t.copy_(lengths);
  const int64_t* p = static_cast<const int64_t*>(t.const_data_ptr());
  return {p, p + t.numel()};
}

// alpha of sample i into `alpha` (frames x states, all -inf before); the negative log-likelihood.
template <class T> double forward_sample(const Batch& b, int64_t i, const T* log_probs,
                                         int64_t frame_stride, T* alpha) {
  const int64_t frames = b.input_lengths[static_cast<size_t>(i)];
  const int64_t states = 2 * b.target_lengths[static_cast<size_t>(i)] + 1, width = b.states();
  if (frames == 0) return states == 1 ? 0.0 : -kImpossible;
  for (int64_t s = 0; s < std::min<int64_t>(2, states); ++s) alpha[s] = log_probs[b.label(i, s)];
  Steps steps;
  for (int64_t t = 1; t < frames; ++t) {
    steps.add(64 * states);
    const T* before = alpha + (t - 1) * width;
    const T* p = log_probs + t * frame_stride;
    for (int64_t s = 0; s < states; ++s) {
      const double stay = before[s], step = s > 0 ? before[s - 1] : kImpossible;
      const double skip = b.skips(i, s) ? static_cast<double>(before[s - 2]) : kImpossible;
      alpha[t * width + s] = static_cast<T>(log_add(stay, step, skip) + p[b.label(i, s)]);
    }
  }
  const T* last = alpha + (frames - 1) * width;
  return -log_add(last[states - 1],
                  states > 1 ? static_cast<double>(last[states - 2]) : kImpossible);
}

// The gradient for the frames of sample i; `grad` is zero before.
template <class T> void backward_sample(const Batch& b, int64_t i, const T* log_probs,
                                        int64_t frame_stride, const T* alpha, double loss,
                                        double scale, T* grad) {
  const int64_t frames = b.input_lengths[static_cast<size_t>(i)];
  const int64_t states = 2 * b.target_lengths[static_cast<size_t>(i)] + 1, width = b.states();
  const size_t count = static_cast<size_t>(states);
  std::vector<double> beta(count, kImpossible), next(count),
      gathered(static_cast<size_t>(b.classes));
  Steps steps;
  for (int64_t t = frames - 1; t >= 0; --t) {
    steps.add(128 * states + 64 * b.classes);
    const T* p = log_probs + t * frame_stride;
    for (int64_t s = 0; s < states; ++s) {
      const size_t state = static_cast<size_t>(s);
      double ahead = s >= states - 2 ? 0.0 : kImpossible;
      if (t < frames - 1) {
        const double step = s + 1 < states ? beta[state + 1] : kImpossible;
        const double skip = s + 2 < states && b.skips(i, s + 2) ? beta[state + 2] : kImpossible;
        ahead = log_add(beta[state], step, skip);
      }
      next[state] = ahead + p[b.label(i, s)];
    }
    beta.swap(next);
    std::fill(gathered.begin(), gathered.end(), kImpossible);
    for (int64_t s = 0; s < states; ++s) {
      double& g = gathered[static_cast<size_t>(b.label(i, s))];
      g = log_add(g, static_cast<double>(alpha[t * width + s]) + beta[static_cast<size_t>(s)]);
    }
    for (int64_t c = 0; c < b.classes; ++c) {
      const double lp = p[c], g = gathered[static_cast<size_t>(c)];
      const double share = g == kImpossible ? 0.0 : std::exp(g + loss - lp);
      grad[t * frame_stride + c] = static_cast<T>((std::exp(lp) - share) * scale);
    }
  }
}

Tensor reduce(const Tensor& losses, const std::vector<int64_t>& target_lengths, bool unbatched,
              int64_t reduction, bool zero_infinity) {
  Tensor result = losses;
  if (zero_infinity) result = at::masked_fill(result, at::eq(result, -kImpossible), 0.0);
  if (reduction == kMeanReduction) {
    const auto count = static_cast<int64_t>(target_lengths.size());
    const bool has_data = !result.key_set().has(DispatchKey::Meta);
    const Tensor lengths = has_data ? at::detail::empty({count}, kLong)
                                    : at::empty({count}, result.options().dtype(kLong));
    if (has_data)
      std::copy(target_lengths.begin(), target_lengths.end(),
                static_cast<int64_t*>(lengths.mutable_data_ptr()));
    Tensor divisors = at::clamp_min(lengths, 1).to(result.scalar_type());
    if (has_data && !result.is_cpu()) {
      const Tensor moved = at::detail::empty({count}, result.scalar_type(), result.device());
      divisors = moved.copy_(divisors);
    }
    return at::mean(at::div(result, divisors));
  }
  if (reduction == kNoReduction && unbatched) result = result.squeeze(0);
  return apply_reduction(result, reduction);
}
} // namespace

std::tuple<Tensor, Tensor> ctc_loss_meta(const Tensor& log_probs, const Tensor& targets,
                                         IntArrayRef input_lengths, IntArrayRef target_lengths,
                                         int64_t blank, bool /*zero_infinity*/) {
  const Batch b(log_probs, targets, input_lengths, target_lengths, blank);
  const ScalarType dtype = log_probs.scalar_type();
  return {at::detail::empty({b.samples}, dtype, Device(kMeta)),
          at::detail::empty({b.samples, b.frames, b.states()}, dtype, Device(kMeta))};
}
Tensor ctc_loss_backward_meta(const Tensor& /*grad*/, const Tensor& log_probs,
                              const Tensor& /*targets*/, IntArrayRef /*input_lengths*/,
                              IntArrayRef /*target_lengths*/, const Tensor& /*neg_log_likelihood*/,
                              const Tensor& /*log_alpha*/, int64_t /*blank*/,
                              bool /*zero_infinity*/) {
  return at::detail::empty(log_probs.sizes(), log_probs.scalar_type(), Device(kMeta));
}

std::tuple<Tensor, Tensor> ctc_loss_cpu(const Tensor& log_probs, const Tensor& targets,
                                        IntArrayRef input_lengths, IntArrayRef target_lengths,
                                        int64_t blank, bool /*zero_infinity*/) {
  const Batch b(log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor x = log_probs.contiguous();
  const Tensor losses = at::detail::empty({b.samples}, x.scalar_type());
  const Tensor log_alpha = at::detail::empty({b.samples, b.frames, b.states()}, x.scalar_type());
  log_alpha.fill_(kImpossible);
  dtype_switch<WideFloatingTypes>(x.scalar_type(), "ctc_loss_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = static_cast<const T*>(x.const_data_ptr());
    T* alpha = static_cast<T*>(log_alpha.mutable_data_ptr());
    T* out = static_cast<T*>(losses.mutable_data_ptr());
    BlockingRegion region;
    at::parallel_for(0, b.samples, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[i] = static_cast<T>(forward_sample(b, i, p + i * b.classes, b.samples * b.classes,
                                               alpha + i * b.frames * b.states()));
    });
  });
  return {losses, log_alpha};
}

namespace {
// The gradient of an infinite loss, NaN, in the frames that the sample has.
template <class T> void forget_sample(const Batch& b, int64_t i, T* out) {
  for (int64_t t = 0; t < b.input_lengths[static_cast<size_t>(i)]; ++t)
    std::fill_n(out + t * b.samples * b.classes, b.classes, std::numeric_limits<T>::quiet_NaN());
}
} // namespace

Tensor ctc_loss_backward_cpu(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                             IntArrayRef input_lengths, IntArrayRef target_lengths,
                             const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                             int64_t blank, bool zero_infinity) {
  const Batch b(log_probs, targets, input_lengths, target_lengths, blank);
  const ScalarType dtype = log_probs.scalar_type();
  const Tensor x = log_probs.contiguous(), alpha = log_alpha.to(dtype).contiguous();
  const Tensor losses = neg_log_likelihood.to(kDouble).contiguous(),
               g = grad.to(kDouble).contiguous();
  TORCH_CHECK(alpha.numel() == b.samples * b.frames * b.states() && losses.numel() == b.samples &&
                  g.numel() == b.samples,
              "_ctc_loss_backward: grad, neg_log_likelihood and log_alpha do not fit the batch");
  const Tensor result = at::detail::empty(x.sizes(), dtype);
  result.zero_();
  dtype_switch<WideFloatingTypes>(dtype, "ctc_loss_backward_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = static_cast<const T*>(x.const_data_ptr());
    const T* a = static_cast<const T*>(alpha.const_data_ptr());
    T* out = static_cast<T*>(result.mutable_data_ptr());
    const double* loss = static_cast<const double*>(losses.const_data_ptr());
    const double* scale = static_cast<const double*>(g.const_data_ptr());
    BlockingRegion region;
    at::parallel_for(0, b.samples, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (loss[i] == -kImpossible) {
          // No path explains the target, and no change of the probabilities makes one.
          if (!zero_infinity) forget_sample(b, i, out + i * b.classes);
          continue;
        }
        backward_sample(b, i, p + i * b.classes, b.samples * b.classes,
                        a + i * b.frames * b.states(), loss[i], scale[i], out + i * b.classes);
      }
    });
  });
  return result;
}

// ---- lengths as tensors
// -----------------------------------------------------------------------------
std::tuple<Tensor, Tensor> ctc_loss_tensor(const Tensor& log_probs, const Tensor& targets,
                                           const Tensor& input_lengths,
                                           const Tensor& target_lengths, int64_t blank,
                                           bool zero_infinity) {
  return at::_ctc_loss(log_probs, targets, lengths_of("input_lengths", input_lengths),
                       lengths_of("target_lengths", target_lengths), blank, zero_infinity);
}
Tensor ctc_loss_backward_tensor(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                                const Tensor& input_lengths, const Tensor& target_lengths,
                                const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                                int64_t blank, bool zero_infinity) {
  return at::_ctc_loss_backward(grad, log_probs, targets,
                                lengths_of("input_lengths", input_lengths),
                                lengths_of("target_lengths", target_lengths), neg_log_likelihood,
                                log_alpha, blank, zero_infinity);
}

// ---- with the reduction
// -----------------------------------------------------------------------------
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                IntArrayRef target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  check_reduction(reduction);
  const bool unbatched = log_probs.dim() == 2;
  const Tensor x = unbatched ? log_probs.unsqueeze(1) : log_probs;
  const Tensor t = unbatched && targets.dim() == 1 ? targets.unsqueeze(0) : targets;
  const Tensor losses =
      std::get<0>(at::_ctc_loss(x, t, input_lengths, target_lengths, blank, zero_infinity));
  return reduce(losses, target_lengths.vec(), unbatched, reduction, zero_infinity);
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, int64_t reduction,
                bool zero_infinity) {
  return at::ctc_loss(log_probs, targets, lengths_of("input_lengths", input_lengths),
                      lengths_of("target_lengths", target_lengths), blank, reduction,
                      zero_infinity);
}
} // namespace at::native
