// Optimizer steps over lists of tensors in one call: no temporaries, one pass, large parameters
// split between threads.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/native/foreach/FusedOptimKernels.h>
#include <ATen/native/foreach/Native.h>
#include <ATen/ops/div.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {

namespace optim {
CRESSET_DEFINE_ISA_TABLE(Table);
} // namespace optim
namespace {
constexpr int64_t kGrain = 16384;

// Whether the step must be left out (an overflow was found), and the factor gradients carry.
bool skips(const std::optional<Tensor>& found_inf) {
  return found_inf && found_inf->defined() && found_inf->item<double>() != 0;
}

void check_lists(const char* name, TensorList params, TensorList grads) {
  TORCH_CHECK(params.size() == grads.size(), name, ": got ", params.size(), " parameters and ",
              grads.size(), " gradients");
  for (size_t i = 0; i < params.size(); ++i) {
    TORCH_CHECK(params[i].sizes() == grads[i].sizes(), name, ": parameter ", i, " has shape ",
                params[i].sizes(), " but its gradient has shape ", grads[i].sizes());
    TORCH_CHECK(params[i].scalar_type() == grads[i].scalar_type(), name, ": parameter ", i,
                " has dtype ", params[i].scalar_type(), " but its gradient has dtype ",
                grads[i].scalar_type());
    TORCH_CHECK_NOT_IMPLEMENTED(params[i].is_cpu() || params[i].is_meta(), name,
                                " is not implemented for ", params[i].device());
  }
}
void check_state(const char* name, const Tensor& param, const Tensor& state) {
  TORCH_CHECK(state.sizes() == param.sizes() && state.scalar_type() == param.scalar_type(), name,
              ": optimizer state of shape ", state.sizes(), " and dtype ", state.scalar_type(),
              " does not fit a parameter of shape ", param.sizes(), " and dtype ",
              param.scalar_type());
}

// A step without data: every list fits the parameters and counts as written.
void written_like(const char* name, TensorList params, std::initializer_list<TensorList> states) {
  for (const TensorList& list : states) {
    TORCH_CHECK(list.empty() || list.size() == params.size(), name,
                ": the lists of states must be as long as the list of parameters");
    for (size_t k = 0; k < list.size(); ++k) {
      check_state(name, params[k], list[k]);
      list[k].unsafeGetTensorImpl()->bump_version();
    }
  }
  for (const Tensor& param : params) param.unsafeGetTensorImpl()->bump_version();
}

// The tensor itself when its elements lie in memory as those of the parameter `like` are walked,
// else a copy that does; written back by finish().
struct Dense {
  Dense(const Tensor& t, const Tensor& like) : original(t), used(t) {
    const DimVector order = like.is_non_overlapping_and_dense()
                                ? DimVector(like.strides())
                                : c10::contiguous_strides(like.sizes());
    if (t.is_non_overlapping_and_dense() && t.strides() == IntArrayRef(order)) return;
    used = detail::empty_strided(t.sizes(), order, t.scalar_type());
    used.copy_(t);
    copied = true;
  }
  void finish() {
    if (copied)
      original.copy_(used);
    else
      original.unsafeGetTensorImpl()->bump_version();
  }
  char* data() const { return static_cast<char*>(used.data_ptr()); }
  Tensor original, used;
  bool copied = false;
};

// The gradient without the factor it carries; written back, as the next reader expects it.
Tensor unscale(const Tensor& grad, const std::optional<Tensor>& scale) {
  if (!scale || !scale->defined()) return grad;
  grad.copy_(at::div(grad, Scalar(scale->item<double>())));
  return grad;
}

void adam_step(const char* name, TensorList self, TensorList grads, TensorList exp_avgs,
               TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList state_steps,
               optim::AdamSettings settings, const std::optional<Tensor>& grad_scale,
               const std::optional<Tensor>& found_inf) {
  check_lists(name, self, grads);
  TORCH_CHECK(exp_avgs.size() == self.size() && exp_avg_sqs.size() == self.size() &&
                  state_steps.size() == self.size() &&
                  (!settings.amsgrad || max_exp_avg_sqs.size() == self.size()),
              name, ": the lists of states must be as long as the list of parameters");
  if (skips(found_inf)) return;
  for (size_t k = 0; k < self.size(); ++k) {
    const Tensor& param = self[k];
    check_state(name, param, exp_avgs[k]);
    check_state(name, param, exp_avg_sqs[k]);
    if (settings.amsgrad) check_state(name, param, max_exp_avg_sqs[k]);
    const optim::AdamFn fn = optim::table().adam[static_cast<int>(param.scalar_type())];
    TORCH_CHECK_NOT_IMPLEMENTED(fn != nullptr, "\"", name, "\" not implemented for '",
                                param.scalar_type(), "'");
    settings.step = state_steps[k].item<double>();
    Dense p(param, param), g(unscale(grads[k], grad_scale), param), m(exp_avgs[k], param),
        v(exp_avg_sqs[k], param);
    std::optional<Dense> top;
    if (settings.amsgrad) top.emplace(max_exp_avg_sqs[k], param);
    const int64_t size = param.itemsize();
    parallel_for(0, param.numel(), kGrain, [&](int64_t begin, int64_t end) {
      const int64_t offset = begin * size;
      fn(p.data() + offset, g.data() + offset, m.data() + offset, v.data() + offset,
         top ? top->data() + offset : nullptr, end - begin, settings);
    });
    p.finish(), m.finish(), v.finish();
    if (top) top->finish();
  }
}
} // namespace

void fused_adamw_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                  TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                  double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                  const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  adam_step("_fused_adamw_", self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
            {lr, beta1, beta2, weight_decay, eps, 0, amsgrad, maximize, true}, grad_scale,
            found_inf);
}
void fused_adam_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                 TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                 double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                 const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  adam_step("_fused_adam_", self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
            {lr, beta1, beta2, weight_decay, eps, 0, amsgrad, maximize, false}, grad_scale,
            found_inf);
}

void fused_sgd_(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                double weight_decay, double momentum, double lr, double dampening, bool nesterov,
                bool maximize, bool is_first_step, const std::optional<Tensor>& grad_scale,
                const std::optional<Tensor>& found_inf) {
  check_lists("_fused_sgd_", self, grads);
  const bool buffered = !momentum_buffer_list.empty();
  TORCH_CHECK(!buffered || momentum_buffer_list.size() == self.size(), "_fused_sgd_: got ",
              self.size(), " parameters and ", momentum_buffer_list.size(), " momentum buffers");
  if (skips(found_inf)) return;
  const optim::SgdSettings settings{lr,       momentum, weight_decay, dampening,
                                    nesterov, maximize, is_first_step};
  for (size_t k = 0; k < self.size(); ++k) {
    const Tensor& param = self[k];
    if (buffered) check_state("_fused_sgd_", param, momentum_buffer_list[k]);
    const optim::SgdFn fn = optim::table().sgd[static_cast<int>(param.scalar_type())];
    TORCH_CHECK_NOT_IMPLEMENTED(fn != nullptr, "\"_fused_sgd_\" not implemented for '",
                                param.scalar_type(), "'");
    Dense p(param, param), g(unscale(grads[k], grad_scale), param);
    std::optional<Dense> buffer;
    if (buffered) buffer.emplace(momentum_buffer_list[k], param);
    const int64_t size = param.itemsize();
    parallel_for(0, param.numel(), kGrain, [&](int64_t begin, int64_t end) {
      const int64_t offset = begin * size;
      fn(p.data() + offset, g.data() + offset, buffer ? buffer->data() + offset : nullptr,
         end - begin, settings);
    });
    p.finish();
    if (buffer) buffer->finish();
  }
}

void fused_adagrad_(TensorList self, TensorList grads, TensorList state_sums,
                    TensorList state_steps, double lr, double lr_decay, double weight_decay,
                    double eps, bool maximize, const std::optional<Tensor>& grad_scale,
                    const std::optional<Tensor>& found_inf) {
  check_lists("_fused_adagrad_", self, grads);
  TORCH_CHECK(state_sums.size() == self.size() && state_steps.size() == self.size(),
              "_fused_adagrad_: the lists of states must be as long as the list of parameters");
  if (skips(found_inf)) return;
  for (size_t k = 0; k < self.size(); ++k) {
    const Tensor& param = self[k];
    check_state("_fused_adagrad_", param, state_sums[k]);
    const optim::AdagradFn fn = optim::table().adagrad[static_cast<int>(param.scalar_type())];
    TORCH_CHECK_NOT_IMPLEMENTED(fn != nullptr, "\"_fused_adagrad_\" not implemented for '",
                                param.scalar_type(), "'");
    const double step = state_steps[k].item<double>();
    const optim::AdagradSettings settings{lr / (1 + (step - 1) * lr_decay), weight_decay, eps,
                                          maximize};
    Dense p(param, param), g(unscale(grads[k], grad_scale), param), sum(state_sums[k], param);
    const int64_t size = param.itemsize();
    parallel_for(0, param.numel(), kGrain, [&](int64_t begin, int64_t end) {
      const int64_t offset = begin * size;
      fn(p.data() + offset, g.data() + offset, sum.data() + offset, end - begin, settings);
    });
    p.finish(), sum.finish();
  }
}

// ---- without data
void fused_adam_meta_(TensorList self, TensorList grads, TensorList exp_avgs,
                      TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                      TensorList /*state_steps*/, double /*lr*/, double /*beta1*/, double /*beta2*/,
                      double /*weight_decay*/, double /*eps*/, bool amsgrad, bool /*maximize*/,
                      const std::optional<Tensor>& /*grad_scale*/,
                      const std::optional<Tensor>& /*found_inf*/) {
  check_lists("_fused_adam_", self, grads);
  written_like("_fused_adam_", self,
               {exp_avgs, exp_avg_sqs, amsgrad ? max_exp_avg_sqs : TensorList()});
}

void fused_adamw_meta_(TensorList self, TensorList grads, TensorList exp_avgs,
                       TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
                       TensorList /*state_steps*/, double /*lr*/, double /*beta1*/,
                       double /*beta2*/, double /*weight_decay*/, double /*eps*/, bool amsgrad,
                       bool /*maximize*/, const std::optional<Tensor>& /*grad_scale*/,
                       const std::optional<Tensor>& /*found_inf*/) {
  check_lists("_fused_adamw_", self, grads);
  written_like("_fused_adamw_", self,
               {exp_avgs, exp_avg_sqs, amsgrad ? max_exp_avg_sqs : TensorList()});
}

void fused_sgd_meta_(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                     double /*weight_decay*/, double /*momentum*/, double /*lr*/,
                     double /*dampening*/, bool /*nesterov*/, bool /*maximize*/,
                     bool /*is_first_step*/, const std::optional<Tensor>& /*grad_scale*/,
                     const std::optional<Tensor>& /*found_inf*/) {
  check_lists("_fused_sgd_", self, grads);
  written_like("_fused_sgd_", self, {momentum_buffer_list});
}

void fused_adagrad_meta_(TensorList self, TensorList grads, TensorList state_sums,
                         TensorList /*state_steps*/, double /*lr*/, double /*lr_decay*/,
                         double /*weight_decay*/, double /*eps*/, bool /*maximize*/,
                         const std::optional<Tensor>& /*grad_scale*/,
                         const std::optional<Tensor>& /*found_inf*/) {
  check_lists("_fused_adagrad_", self, grads);
  written_like("_fused_adagrad_", self, {state_sums});
}

Tensor fused_clip_grad_norm_meta(TensorList self, double /*max_norm*/, double /*norm_type*/) {
  TORCH_CHECK(!self.empty(), "_fused_clip_grad_norm: there are no tensors");
  for (const Tensor& t : self) t.unsafeGetTensorImpl()->bump_version();
  return detail::empty({}, self[0].scalar_type(), Device(kMeta));
}

} // namespace at::native
