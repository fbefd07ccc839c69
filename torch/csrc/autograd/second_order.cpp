// See second_order.h.
#include <torch/csrc/autograd/second_order.h>

#include <ATen/functorch/Level.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/engine.h>

namespace torch::autograd::generated {

namespace {
struct GradModeOn {
  GradModeOn() : before(c10::tls_autograd_state.grad_mode) {
    c10::tls_autograd_state.grad_mode = true;
  }
  ~GradModeOn() { c10::tls_autograd_state.grad_mode = before; }
  bool before;
};

// Note [A level for inner derivatives]
// Inside function transforms the tensors of one formula may belong to different levels, and a
// gradient of one kind would not reach the other. The inner derivative then takes place in a grad
// level of its own, which sees all of them alike.
class OwnLevel {
 public:
  OwnLevel(const Tensors& inputs, const Tensor& grad) {
    bool transformed = at::functorch::wrapper_of(grad) != nullptr;
    for (const Tensor& t : inputs)
      transformed = transformed || at::functorch::wrapper_of(t) != nullptr;
    if (transformed) level_ = at::functorch::push_level(at::functorch::LevelKind::Grad);
  }
  ~OwnLevel() {
    if (level_) at::functorch::pop_level(at::functorch::LevelKind::Grad);
  }
  OwnLevel(const OwnLevel&) = delete;
  OwnLevel& operator=(const OwnLevel&) = delete;

  Tensor enter(const Tensor& t) const {
    return level_ && t.defined() ? at::functorch::wrap_grad(t, level_) : t;
  }
  Tensors leave(Tensors list) const {
    for (Tensor& t : list)
      if (const auto* w = level_ ? at::functorch::wrapper_at(t, *level_) : nullptr)
        t = Tensor(w->value);
    return list;
  }
  bool in_use() const { return level_.defined(); }

 private:
  at::functorch::LevelPtr level_;
};

// A tensor with the same values and, under create_graph, the same history, but a place of its own
// in the graph.
Tensor fresh_input(const Tensor& t, bool create_graph, const OwnLevel& level) {
  if (!t.defined()) return t;
  if (level.in_use()) {
    Tensor out = level.enter(t);
    if (out.is_floating_point() || out.is_complex()) set_requires_grad(out, true);
    return out;
  }
  if (create_graph && t.requires_grad()) return at::alias(t);
  Tensor out = detach(t);
  if (out.is_floating_point() || out.is_complex()) set_requires_grad(out, true);
  return out;
}

// grad() of the outputs that have a history, at the wanted inputs; undefined for the others.
Tensors grads_at(const Tensors& outputs, const Tensors& weights, const Tensors& inputs,
                 bool create_graph) {
  Tensors used, given, wanted;
  std::vector<size_t> places;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !outputs[i].requires_grad() || !weights[i].defined()) continue;
    used.push_back(outputs[i]);
    given.push_back(weights[i]);
  }
  Tensors out(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    wanted.push_back(inputs[i]);
    places.push_back(i);
  }
  if (used.empty() || wanted.empty()) return out;
  const Tensors found = grad(used, wanted, given, create_graph, create_graph, true);
  for (size_t k = 0; k < found.size(); ++k) out[places[k]] = found[k];
  return out;
}
} // namespace

Tensors second_order_list(const std::vector<bool>& needed, const Forward& f, const TensorVec& grads,
                          const Tensor& grad_output, const Tensors& inputs) {
  const OwnLevel level(inputs, grad_output);
  GradModeOn on;
  Tensors fresh;
  for (const Tensor& t : inputs) fresh.push_back(fresh_input(t, on.before, level));
  const Tensor weight = fresh_input(grad_output, on.before, level);
  const Tensor y = f(fresh);
  const Tensors first_inputs(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                grads.size(), fresh.size())));
  const Tensors first = grads_at({y}, {weight}, first_inputs, true);
  Tensors targets{weight};
  for (const Tensor& t : fresh) targets.push_back(t);
  targets.resize(needed.size());
  for (size_t i = 0; i < targets.size(); ++i)
    if (!needed[i]) targets[i] = Tensor();
  Tensors given;
  for (const Tensor& g : grads) given.push_back(level.enter(g));
  given.resize(first.size());
  return level.leave(grads_at(first, given, targets, on.before));
}

Tensor stand_in(const TensorVec& grads, size_t i) {
  return grads[i].defined() ? at::zeros_like(detach(grads[i])) : Tensor();
}

// ---- activations
namespace {
// log(1 + exp(x)), without overflow and without corners in its parts.
Tensor soft_smooth(const Tensor& x) { return x - at::log(at::sigmoid(x)); }
Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == 0) return loss;
  return reduction == 1 ? at::_ops::mean::call(loss, std::nullopt)
                        : at::_ops::sum::call(loss, std::nullopt);
}
} // namespace

Forward silu_forward() {
  return [](const Tensors& in) { return in[0] * at::sigmoid(in[0]); };
}
Forward mish_forward() {
  return [](const Tensors& in) { return in[0] * at::tanh(soft_smooth(in[0])); };
}
Forward gelu_forward(std::string_view approximate) {
  if (approximate == "tanh")
    return [](const Tensors& in) {
      const Tensor& x = in[0];
      const Tensor inner = (x + x * x * x * 0.044715) * (kTwoOverSqrtPi * kSqrtHalf);
      return x * (at::tanh(inner) + 1) * 0.5;
    };
  return [](const Tensors& in) { return in[0] * (at::erf(in[0] * kSqrtHalf) + 1) * 0.5; };
}
Forward glu_forward(int64_t dim) {
  return [dim](const Tensors& in) {
    const int64_t half = in[0].size(dim) / 2;
    return in[0].narrow(dim, 0, half) * at::sigmoid(in[0].narrow(dim, half, half));
  };
}
Forward softplus_forward(const Scalar& beta, const Scalar& threshold) {
  return [beta, threshold](const Tensors& in) {
    const Tensor scaled_x = in[0] * beta;
    return at::where(at::gt(scaled_x, threshold), in[0], soft_smooth(scaled_x) / beta);
  };
}
Forward prelu_forward() {
  return [](const Tensors& in) { return at::where(at::gt(in[0], 0), in[0], in[0] * in[1]); };
}
Forward logit_forward(std::optional<double> eps) {
  return [eps](const Tensors& in) {
    const Tensor y = at::log(in[0] / (1 - in[0]));
    if (!eps) return y;
    const Tensor outside = at::lt(in[0] * (1 - in[0]), *eps * (1 - *eps));
    return at::where(outside, 0.0, y);
  };
}

// ---- losses
Forward cross_entropy_forward(const Tensor& target, const std::optional<Tensor>& weight,
                              int64_t reduction, int64_t ignore_index) {
  return [=](const Tensors& in) {
    return at::nll_loss(at::log_softmax(in[0], 1), target, weight, reduction, ignore_index);
  };
}
Forward mse_forward(int64_t reduction) {
  return [reduction](const Tensors& in) {
    const Tensor d = in[0] - in[1];
    return reduced(d * d, reduction);
  };
}
Forward smooth_l1_forward(int64_t reduction, double beta) {
  return [reduction, beta](const Tensors& in) {
    const Tensor d = in[0] - in[1];
    const Tensor length = at::abs(d);
    if (beta == 0) return reduced(length, reduction);
    return reduced(at::where(at::lt(length, beta), d * d * (0.5 / beta), length - 0.5 * beta),
                   reduction);
  };
}
Forward huber_forward(int64_t reduction, double delta) {
  return [reduction, delta](const Tensors& in) {
    const Tensor d = in[0] - in[1];
    const Tensor length = at::abs(d);
    return reduced(at::where(at::le(length, delta), d * d * 0.5, (length - 0.5 * delta) * delta),
                   reduction);
  };
}
Forward soft_margin_forward(int64_t reduction) {
  return
      [reduction](const Tensors& in) { return reduced(soft_smooth(-(in[0] * in[1])), reduction); };
}
Forward bce_forward(int64_t reduction) {
  return [reduction](const Tensors& in) {
    const Tensor yes = at::clamp_min(at::log(in[0]), -100),
                 no = at::clamp_min(at::log(1 - in[0]), -100);
    const Tensor loss = (in[1] - 1) * no - in[1] * yes;
    return reduced(in[2].defined() ? loss * in[2] : loss, reduction);
  };
}

// ---- normalisations
namespace {
Tensor scaled_and_shifted(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor y = weight.defined() ? x * weight : x;
  return bias.defined() ? y + bias : y;
}
Tensor mean_over(const Tensor& x, IntArrayRef dims) {
  return at::mean(x, OptionalIntArrayRef(dims), true);
}
// x without its mean, divided by the deviation that makes the saved reciprocal.
Tensor standardized(const Tensor& x, IntArrayRef dims, const Tensor& rstd) {
  const Tensor centered = x - mean_over(x, dims);
  const Tensor var = mean_over(centered * centered, dims);
  const Tensor eps = detach(at::reciprocal(rstd * rstd) - var);
  return centered * at::rsqrt(var + eps);
}
} // namespace

Forward layer_norm_forward(IntArrayRef shape, const Tensor& rstd) {
  const int64_t n = static_cast<int64_t>(shape.size());
  return [n, rstd](const Tensors& in) {
    c10::DimVector dims;
    for (int64_t d = -n; d < 0; ++d) dims.push_back(d);
    return scaled_and_shifted(standardized(in[0], dims, rstd), in[1], in[2]);
  };
}
Forward rms_norm_forward(IntArrayRef shape, const Tensor& rstd) {
  const int64_t n = static_cast<int64_t>(shape.size());
  return [n, rstd](const Tensors& in) {
    c10::DimVector dims;
    for (int64_t d = -n; d < 0; ++d) dims.push_back(d);
    const Tensor square = mean_over(in[0] * in[0], dims);
    const Tensor eps = detach(at::reciprocal(rstd * rstd) - square);
    return scaled_and_shifted(in[0] * at::rsqrt(square + eps), in[1], Tensor());
  };
}
Forward group_norm_forward(const Tensor& rstd, int64_t n, int64_t c, int64_t hxw, int64_t group) {
  return [rstd, n, c, hxw, group](const Tensors& in) {
    const Tensor x = in[0].reshape({n, group, c / group * hxw});
    const Tensor y = standardized(x, {-1}, rstd.reshape({n, group, 1})).reshape({n, c, hxw});
    const Tensor weight = in[1].defined() ? in[1].reshape({c, 1}) : in[1];
    const Tensor bias = in[2].defined() ? in[2].reshape({c, 1}) : in[2];
    return scaled_and_shifted(y, weight, bias).reshape(in[0].sizes());
  };
}
Forward batch_norm_forward(const Tensor& running_mean, const Tensor& running_var, bool train,
                           double eps) {
  return [running_mean, running_var, train, eps](const Tensors& in) {
    c10::DimVector dims, shape(static_cast<size_t>(in[0].dim()), 1);
    shape[1] = in[0].size(1);
    for (int64_t d = 0; d < in[0].dim(); ++d)
      if (d != 1) dims.push_back(d);
    Tensor y;
    if (train) {
      const Tensor centered = in[0] - mean_over(in[0], dims);
      y = centered * at::rsqrt(mean_over(centered * centered, dims) + eps);
    } else {
      y = (in[0] - running_mean.reshape(shape)) * at::rsqrt(running_var.reshape(shape) + eps);
    }
    const Tensor weight = in[1].defined() ? in[1].reshape(shape) : in[1];
    const Tensor bias = in[2].defined() ? in[2].reshape(shape) : in[2];
    return scaled_and_shifted(y, weight, bias);
  };
}

} // namespace torch::autograd::generated
