// Adam and AdamW, which decays weights apart from the gradient.
#pragma once
#include <torch/optim/optimizer.h>

namespace torch::optim {

#define CRESSET_ADAM(Name, decay)                                                                  \
  struct TORCH_API Name##Options : public OptimizerCloneableOptions<Name##Options> {               \
    using betas_t = std::tuple<double, double>;                                                    \
    Name##Options(double lr = 1e-3) : lr_(lr) {}                                                   \
    template <class F, class... S> static void fields(F&& f, S&... s) {                            \
      f("lr", s.lr_...), f("betas", s.betas_...), f("eps", s.eps_...);                             \
      f("weight_decay", s.weight_decay_...), f("amsgrad", s.amsgrad_...);                          \
    }                                                                                              \
    TORCH_ARG(double, lr);                                                                         \
    TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);                                       \
    TORCH_ARG(double, eps) = 1e-8;                                                                 \
    TORCH_ARG(double, weight_decay) = decay;                                                       \
    TORCH_ARG(bool, amsgrad) = false;                                                              \
  };                                                                                               \
  struct TORCH_API Name##ParamState : public OptimizerCloneableParamState<Name##ParamState> {      \
    template <class F, class... S> static void fields(F&& f, S&... s) {                            \
      f("step", s.step_...), f("exp_avg", s.exp_avg_...), f("exp_avg_sq", s.exp_avg_sq_...);       \
      f("max_exp_avg_sq", s.max_exp_avg_sq_...);                                                   \
    }                                                                                              \
    TORCH_ARG(int64_t, step) = 0;                                                                  \
    TORCH_ARG(Tensor, exp_avg);                                                                    \
    TORCH_ARG(Tensor, exp_avg_sq);                                                                 \
    TORCH_ARG(Tensor, max_exp_avg_sq) = {};                                                        \
  };                                                                                               \
  class TORCH_API Name : public Optimizer {                                                        \
   public:                                                                                         \
    explicit Name(const std::vector<OptimizerParamGroup>& param_groups,                            \
                  Name##Options defaults = {});                                                    \
    explicit Name(std::vector<Tensor> params, Name##Options defaults = {})                         \
        : Name({OptimizerParamGroup(std::move(params))}, defaults) {}                              \
    Tensor step(LossClosure closure = nullptr) override;                                           \
                                                                                                   \
   protected:                                                                                      \
    std::unique_ptr<OptimizerParamState> make_state() const override;                              \
  }
CRESSET_ADAM(Adam, 0);
CRESSET_ADAM(AdamW, 1e-2);
#undef CRESSET_ADAM

} // namespace torch::optim
