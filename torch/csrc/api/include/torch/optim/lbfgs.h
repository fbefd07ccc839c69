// L-BFGS: a quasi-Newton method that keeps a few past steps. One group of parameters only.
#pragma once
#include <torch/optim/optimizer.h>

namespace torch::optim {

struct TORCH_API LBFGSOptions : public OptimizerCloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("lr", s.lr_...), f("max_iter", s.max_iter_...), f("max_eval", s.max_eval_...);
    f("tolerance_grad", s.tolerance_grad_...), f("tolerance_change", s.tolerance_change_...);
    f("history_size", s.history_size_...), f("line_search_fn", s.line_search_fn_...);
  }
  TORCH_ARG(double, lr);
  TORCH_ARG(int64_t, max_iter) = 20;
  TORCH_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  TORCH_ARG(double, tolerance_grad) = 1e-7;
  TORCH_ARG(double, tolerance_change) = 1e-9;
  TORCH_ARG(int64_t, history_size) = 100;
  // "strong_wolfe" or nothing.
  TORCH_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;
};
struct TORCH_API LBFGSParamState : public OptimizerCloneableParamState<LBFGSParamState> {
  template <class F, class... S> static void fields(F&& f, S&... s) {
    f("func_evals", s.func_evals_...), f("n_iter", s.n_iter_...), f("t", s.t_...);
    f("prev_loss", s.prev_loss_...), f("d", s.d_...), f("H_diag", s.H_diag_...);
    f("prev_flat_grad", s.prev_flat_grad_...), f("old_dirs", s.old_dirs_...);
    f("old_stps", s.old_stps_...), f("ro", s.ro_...), f("al", s.al_...);
  }
  TORCH_ARG(int64_t, func_evals) = 0;
  TORCH_ARG(int64_t, n_iter) = 0;
  TORCH_ARG(double, t) = 0;
  TORCH_ARG(double, prev_loss) = 0;
  TORCH_ARG(Tensor, d) = {};
  TORCH_ARG(Tensor, H_diag) = {};
  TORCH_ARG(Tensor, prev_flat_grad) = {};
  TORCH_ARG(std::deque<Tensor>, old_dirs);
  TORCH_ARG(std::deque<Tensor>, old_stps);
  TORCH_ARG(std::deque<Tensor>, ro);
  TORCH_ARG(std::optional<std::vector<Tensor>>, al) = std::nullopt;
};

class TORCH_API LBFGS : public Optimizer {
 public:
  explicit LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults = {});
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = {})
      : LBFGS({OptimizerParamGroup(std::move(params))}, defaults) {}
  Tensor step(LossClosure closure) override;

 protected:
  std::unique_ptr<OptimizerParamState> make_state() const override;
};

} // namespace torch::optim
