// RMSprop.
#pragma once
#include <torch/optim/optimizer.h>

namespace torch::optim {

struct TORCH_API RMSpropOptions : public OptimizerCloneableOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("lr", s.lr_...), f("alpha", s.alpha_...), f("eps", s.eps_...);
    f("weight_decay", s.weight_decay_...), f("momentum", s.momentum_...);
    f("centered", s.centered_...);
  }
  TORCH_ARG(double, lr);
  TORCH_ARG(double, alpha) = 0.99;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, centered) = false;
};
struct TORCH_API RMSpropParamState : public OptimizerCloneableParamState<RMSpropParamState> {
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("step", s.step_...), f("square_avg", s.square_avg_...);
    f("momentum_buffer", s.momentum_buffer_...), f("grad_avg", s.grad_avg_...);
  }
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(Tensor, square_avg);
  TORCH_ARG(Tensor, momentum_buffer) = {};
  TORCH_ARG(Tensor, grad_avg) = {};
};

class TORCH_API RMSprop : public Optimizer {
 public:
  explicit RMSprop(const std::vector<OptimizerParamGroup>& param_groups,
                   RMSpropOptions defaults = {});
  explicit RMSprop(std::vector<Tensor> params, RMSpropOptions defaults = {})
      : RMSprop({OptimizerParamGroup(std::move(params))}, defaults) {}
  Tensor step(LossClosure closure = nullptr) override;

 protected:
  std::unique_ptr<OptimizerParamState> make_state() const override;
};

} // namespace torch::optim
