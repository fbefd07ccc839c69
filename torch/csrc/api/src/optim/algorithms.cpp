// The steps of SGD, Adam, AdamW, Adagrad and RMSprop.
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>

namespace torch::optim {
namespace {
void check_range(double value, double least, double end, const char* name) {
  TORCH_CHECK(value >= least && value < end, "Invalid ", name, ": ", value);
}
constexpr double kEndless = INFINITY;

// The gradient with the pull towards zero added.
Tensor decayed(const Tensor& grad, const Tensor& p, double weight_decay) {
  return weight_decay != 0 ? grad.add(p, weight_decay) : grad;
}
} // namespace

// ---- SGD
SGD::SGD(const std::vector<OptimizerParamGroup>& param_groups, SGDOptions defaults)
    : Optimizer(param_groups, std::make_unique<SGDOptions>(defaults)) {
  check_range(defaults.lr(), 0, kEndless, "learning rate");
  check_range(defaults.momentum(), 0, kEndless, "momentum value");
  check_range(defaults.weight_decay(), 0, kEndless, "weight_decay value");
  TORCH_CHECK(!defaults.nesterov() || (defaults.momentum() > 0 && defaults.dampening() == 0),
              "Nesterov momentum requires a momentum and zero dampening");
}
std::unique_ptr<OptimizerParamState> SGD::make_state() const {
  return std::make_unique<SGDParamState>();
}
Tensor SGD::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for (OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<SGDOptions&>(group.options());
    for (Tensor& p : group.params()) {
      if (!p.mutable_grad().defined()) continue;
      Tensor direction = decayed(p.mutable_grad(), p, o.weight_decay());
      if (o.momentum() != 0) {
        bool is_new = false;
        Tensor& buffer = state_of<SGDParamState>(p, is_new).momentum_buffer();
        if (is_new)
          buffer = direction.clone();
        else
          buffer.mul_(o.momentum()).add_(direction, 1 - o.dampening());
        direction = o.nesterov() ? direction.add(buffer, o.momentum()) : buffer;
      }
      p.add_(direction, -o.lr());
    }
  }
  return loss;
}

// ---- Adam and AdamW
namespace {
template <class Options> void check_adam(const Options& o) {
  check_range(o.lr(), 0, kEndless, "learning rate");
  check_range(o.eps(), 0, kEndless, "epsilon value");
  check_range(std::get<0>(o.betas()), 0, 1, "beta parameter at index 0");
  check_range(std::get<1>(o.betas()), 0, 1, "beta parameter at index 1");
  check_range(o.weight_decay(), 0, kEndless, "weight_decay value");
}
template <class Options, class State>
void adam_update(const Tensor& p, const Tensor& grad, const Options& o, State& state, bool is_new) {
  TORCH_CHECK(!grad.is_sparse(), "Adam does not support sparse gradients");
  if (is_new) {
    state.exp_avg(at::zeros_like(p));
    state.exp_avg_sq(at::zeros_like(p));
    if (o.amsgrad()) state.max_exp_avg_sq(at::zeros_like(p));
  }
  state.step(state.step() + 1);
  const double beta1 = std::get<0>(o.betas()), beta2 = std::get<1>(o.betas());
  const double correction1 = 1 - std::pow(beta1, double(state.step()));
  const double correction2 = 1 - std::pow(beta2, double(state.step()));
  state.exp_avg().mul_(beta1).add_(grad, 1 - beta1);
  state.exp_avg_sq().mul_(beta2).addcmul_(grad, grad, 1 - beta2);
  Tensor square = state.exp_avg_sq();
  if (o.amsgrad()) {
    state.max_exp_avg_sq(at::maximum(square, state.max_exp_avg_sq()));
    square = state.max_exp_avg_sq();
  }
  const Tensor scale = (square.sqrt() / std::sqrt(correction2)).add_(o.eps());
  p.addcdiv_(state.exp_avg(), scale, -o.lr() / correction1);
}
} // namespace

Adam::Adam(const std::vector<OptimizerParamGroup>& param_groups, AdamOptions defaults)
    : Optimizer(param_groups, std::make_unique<AdamOptions>(defaults)) {
  check_adam(defaults);
}
std::unique_ptr<OptimizerParamState> Adam::make_state() const {
  return std::make_unique<AdamParamState>();
}
Tensor Adam::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for (OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<AdamOptions&>(group.options());
    for (Tensor& p : group.params()) {
      if (!p.mutable_grad().defined()) continue;
      bool is_new = false;
      auto& state = state_of<AdamParamState>(p, is_new);
      adam_update(p, decayed(p.mutable_grad(), p, o.weight_decay()), o, state, is_new);
    }
  }
  return loss;
}

AdamW::AdamW(const std::vector<OptimizerParamGroup>& param_groups, AdamWOptions defaults)
    : Optimizer(param_groups, std::make_unique<AdamWOptions>(defaults)) {
  check_adam(defaults);
}
std::unique_ptr<OptimizerParamState> AdamW::make_state() const {
  return std::make_unique<AdamWParamState>();
}
Tensor AdamW::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for (OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<AdamWOptions&>(group.options());
    for (Tensor& p : group.params()) {
      if (!p.mutable_grad().defined()) continue;
      bool is_new = false;
      auto& state = state_of<AdamWParamState>(p, is_new);
      if (o.weight_decay() != 0) p.mul_(1 - o.lr() * o.weight_decay());
      adam_update(p, p.mutable_grad(), o, state, is_new);
    }
  }
  return loss;
}

// ---- Adagrad
Adagrad::Adagrad(const std::vector<OptimizerParamGroup>& param_groups, AdagradOptions defaults)
    : Optimizer(param_groups, std::make_unique<AdagradOptions>(defaults)) {
  check_range(defaults.lr(), 0, kEndless, "learning rate");
  check_range(defaults.lr_decay(), 0, kEndless, "lr_decay value");
  check_range(defaults.weight_decay(), 0, kEndless, "weight_decay value");
  check_range(defaults.initial_accumulator_value(), 0, kEndless, "initial_accumulator_value value");
  check_range(defaults.eps(), 0, kEndless, "epsilon value");
  for (const OptimizerParamGroup& group : param_groups_)
    for (const Tensor& p : group.params()) {
      bool is_new = false;
      state_of<AdagradParamState>(p, is_new).sum(
          at::full_like(p.data(), defaults.initial_accumulator_value()));
    }
}
std::unique_ptr<OptimizerParamState> Adagrad::make_state() const {
  return std::make_unique<AdagradParamState>();
}
Tensor Adagrad::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for (OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<AdagradOptions&>(group.options());
    for (Tensor& p : group.params()) {
      if (!p.mutable_grad().defined()) continue;
      bool is_new = false;
      auto& state = state_of<AdagradParamState>(p, is_new);
      if (is_new) state.sum(at::full_like(p, o.initial_accumulator_value()));
      state.step(state.step() + 1);
      const double rate = o.lr() / (1 + double(state.step() - 1) * o.lr_decay());
      Tensor grad = p.mutable_grad();
      if (!grad.is_sparse()) {
        grad = decayed(grad, p, o.weight_decay());
        state.sum().addcmul_(grad, grad, 1.0);
        p.addcdiv_(grad, state.sum().sqrt().add_(o.eps()), -rate);
        continue;
      }
      TORCH_CHECK(o.weight_decay() == 0,
                  "weight_decay option is not compatible with sparse gradients");
      // Rows that have no gradient stay as they are.
      grad = grad.coalesce();
      const auto like = [&](const Tensor& values) {
        return at::sparse_coo_tensor(grad.indices(), values, grad.sizes(), grad.options());
      };
      state.sum().add_(like(grad.values().pow(2)));
      const Tensor scale = state.sum().sparse_mask(grad).values().sqrt().add_(o.eps());
      p.add_(like(grad.values() / scale), -rate);
    }
  }
  return loss;
}

// ---- RMSprop
RMSprop::RMSprop(const std::vector<OptimizerParamGroup>& param_groups, RMSpropOptions defaults)
    : Optimizer(param_groups, std::make_unique<RMSpropOptions>(defaults)) {
  check_range(defaults.lr(), 0, kEndless, "learning rate");
  check_range(defaults.eps(), 0, kEndless, "epsilon value");
  check_range(defaults.momentum(), 0, kEndless, "momentum value");
  check_range(defaults.weight_decay(), 0, kEndless, "weight_decay value");
  check_range(defaults.alpha(), 0, kEndless, "alpha value");
}
std::unique_ptr<OptimizerParamState> RMSprop::make_state() const {
  return std::make_unique<RMSpropParamState>();
}
Tensor RMSprop::step(LossClosure closure) {
  const NoGradGuard no_grad;
  const Tensor loss = loss_of(closure);
  for (OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<RMSpropOptions&>(group.options());
    for (Tensor& p : group.params()) {
      if (!p.mutable_grad().defined()) continue;
      TORCH_CHECK(!p.mutable_grad().is_sparse(), "RMSprop does not support sparse gradients");
      bool is_new = false;
      auto& state = state_of<RMSpropParamState>(p, is_new);
      if (is_new) {
        state.square_avg(at::zeros_like(p));
        if (o.momentum() > 0) state.momentum_buffer(at::zeros_like(p));
        if (o.centered()) state.grad_avg(at::zeros_like(p));
      }
      state.step(state.step() + 1);
      const Tensor grad = decayed(p.mutable_grad(), p, o.weight_decay());
      state.square_avg().mul_(o.alpha()).addcmul_(grad, grad, 1 - o.alpha());
      Tensor square = state.square_avg();
      if (o.centered()) {
        state.grad_avg().mul_(o.alpha()).add_(grad, 1 - o.alpha());
        square = square.addcmul(state.grad_avg(), state.grad_avg(), -1);
      }
      const Tensor scale = square.sqrt().add_(o.eps());
      if (o.momentum() > 0) {
        state.momentum_buffer().mul_(o.momentum()).addcdiv_(grad, scale, 1.0);
        p.add_(state.momentum_buffer(), -o.lr());
      } else {
        p.addcdiv_(grad, scale, -o.lr());
      }
    }
  }
  return loss;
}

} // namespace torch::optim
