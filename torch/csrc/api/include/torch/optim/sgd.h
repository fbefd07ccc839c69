// Stochastic gradient descent, with momentum.
#pragma once
#include <torch/optim/optimizer.h>

namespace torch::optim {

struct TORCH_API SGDOptions : public OptimizerCloneableOptions<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("lr", s.lr_...), f("momentum", s.momentum_...), f("dampening", s.dampening_...);
    f("weight_decay", s.weight_decay_...), f("nesterov", s.nesterov_...);
  }
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(double, dampening) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, nesterov) = false;
};
struct TORCH_API SGDParamState : public OptimizerCloneableParamState<SGDParamState> {
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("momentum_buffer", s.momentum_buffer_...);
  }
  TORCH_ARG(Tensor, momentum_buffer);
};

class TORCH_API SGD : public Optimizer {
 public:
  explicit SGD(const std::vector<OptimizerParamGroup>& param_groups, SGDOptions defaults);
  explicit SGD(std::vector<Tensor> params, SGDOptions defaults)
      : SGD({OptimizerParamGroup(std::move(params))}, defaults) {}
  Tensor step(LossClosure closure = nullptr) override;

 protected:
  std::unique_ptr<OptimizerParamState> make_state() const override;
};

} // namespace torch::optim
