// Adagrad.
#pragma once
#include <torch/optim/optimizer.h>

namespace torch::optim {

struct TORCH_API AdagradOptions : public OptimizerCloneableOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("lr", s.lr_...), f("lr_decay", s.lr_decay_...), f("weight_decay", s.weight_decay_...);
    f("initial_accumulator_value", s.initial_accumulator_value_...), f("eps", s.eps_...);
  }
  TORCH_ARG(double, lr);
  TORCH_ARG(double, lr_decay) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, initial_accumulator_value) = 0;
  TORCH_ARG(double, eps) = 1e-10;
};
struct TORCH_API AdagradParamState : public OptimizerCloneableParamState<AdagradParamState> {
  AdagradParamState() = default;
  AdagradParamState(const AdagradParamState&) = default;
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("step", s.step_...), f("sum", s.sum_...);
  }
  TORCH_ARG(Tensor, sum);
  TORCH_ARG(int64_t, step) = 0;
};

class TORCH_API Adagrad : public Optimizer {
 public:
  explicit Adagrad(const std::vector<OptimizerParamGroup>& param_groups,
                   AdagradOptions defaults = {});
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions defaults = {})
      : Adagrad({OptimizerParamGroup(std::move(params))}, defaults) {}
  Tensor step(LossClosure closure = nullptr) override;

 protected:
  std::unique_ptr<OptimizerParamState> make_state() const override;
};

} // namespace torch::optim
