// Batching rules of normalizations, written as other operators on the samples: the statistics, the
// weights and the gradients of the weights belong to each sample.
#include <ATen/functorch/BatchRule.h>

#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var.h>

namespace at::functorch {
namespace {

using Dims = std::vector<int64_t>;
using OptionalTensor = std::optional<Tensor>;

Tensor mean_over(const Tensor& t, const Dims& dims) {
  return at::mean(t, OptionalIntArrayRef(IntArrayRef(dims)), true);
}
Tensor sum_over(const Tensor& t, const Dims& dims, bool keep = false) {
  return dims.empty() ? t : at::sum(t, OptionalIntArrayRef(IntArrayRef(dims)), keep);
}
Tensor var_over(const Tensor& t, const Dims& dims) {
  return at::var(t, OptionalIntArrayRef(IntArrayRef(dims)), std::optional<Scalar>(Scalar(0)), true);
}
Tensor affine(Tensor out, const OptionalTensor& weight, const OptionalTensor& bias) {
  if (weight && weight->defined()) out = at::mul(out, *weight);
  return bias && bias->defined() ? at::add(out, *bias) : out;
}
Dims range(int64_t from, int64_t to) {
  Dims out;
  for (int64_t d = from; d < to; ++d) out.push_back(d);
  return out;
}
bool any_batched(const Call& call, std::initializer_list<size_t> arguments) {
  for (const size_t i : arguments)
    if (call.args[i].isTensor() && call.batched(call.tensor(i))) return true;
  return false;
}

// The gradient at the input of out = (x - mean) * rstd, where the mean is over `dims`.
Tensor normalized_grad(const Tensor& g, const Tensor& xhat, const Tensor& rstd, const Dims& dims) {
  const Tensor centred = at::sub(g, mean_over(g, dims));
  return at::mul(at::sub(centred, at::mul(xhat, mean_over(at::mul(g, xhat), dims))), rstd);
}

// ---- layer norm
void layer_norm_rule(Call& call) {
  if (!any_batched(call, {2, 3})) {
    Stack stack = call.args;
    stack[0] = IValue(call.front(call.tensor(0)));
    call.run(std::move(stack));
    return;
  }
  const auto [out, mean, rstd] = at::native_layer_norm(call.tensor(0), call.args[1].toIntList(), {},
                                                       {}, call.args[4].toDouble());
  call.give_batched(affine(out, call.optional(2), call.optional(3)));
  call.give_batched(mean);
  call.give_batched(rstd);
}

void layer_norm_backward_rule(Call& call) {
  const Tensor grad = call.tensor(0), x = call.tensor(1), mean = call.tensor(3),
               rstd = call.tensor(4);
  const OptionalTensor weight = call.optional(5);
  const std::vector<bool> mask = call.args[7].toBoolList();
  const int64_t outer = x.dim() - static_cast<int64_t>(call.args[2].toIntList().size());
  const Tensor xhat = at::mul(at::sub(x, mean), rstd);
  Tensor at_x, at_weight, at_bias;
  if (mask[0]) {
    const Tensor g = weight && weight->defined() ? at::mul(grad, *weight) : grad;
    at_x = normalized_grad(g, xhat, rstd, range(outer, x.dim()));
  }
  if (mask[1]) at_weight = sum_over(at::mul(grad, xhat), range(0, outer));
  if (mask[2]) at_bias = sum_over(grad, range(0, outer));
  for (const Tensor& t : {at_x, at_weight, at_bias}) call.results.emplace_back(t);
}

void rms_norm_rule(Call& call) {
  if (!any_batched(call, {2})) {
    Stack stack = call.args;
    stack[0] = IValue(call.front(call.tensor(0)));
    call.run(std::move(stack));
    return;
  }
  const std::vector<int64_t> shape = call.args[1].toIntList();
  const auto [out, rstd] = at::_fused_rms_norm(
      call.tensor(0), shape, {},
      call.args[3].isNone() ? std::nullopt : std::optional<double>(call.args[3].toDouble()));
  call.give_batched(affine(out, call.optional(2), {}));
  call.give_batched(rstd);
}

void rms_norm_backward_rule(Call& call) {
  const Tensor grad = call.tensor(0), x = call.tensor(1), rstd = call.tensor(3);
  const OptionalTensor weight = call.optional(4);
  const std::vector<bool> mask = call.args[5].toBoolList();
  const int64_t outer = x.dim() - static_cast<int64_t>(call.args[2].toIntList().size());
  const Tensor xhat = at::mul(x, rstd);
  Tensor at_x, at_weight;
  if (mask[0]) {
    const Tensor g = weight && weight->defined() ? at::mul(grad, *weight) : grad;
    const Tensor along = mean_over(at::mul(g, xhat), range(outer, x.dim()));
    at_x = at::mul(at::sub(g, at::mul(xhat, along)), rstd);
  }
  if (mask[1]) at_weight = sum_over(at::mul(grad, xhat), range(0, outer));
  for (const Tensor& t : {at_x, at_weight}) call.results.emplace_back(t);
}

// ---- group norm
Tensor per_channel(const Tensor& t, int64_t rank) {
  Dims shape(static_cast<size_t>(rank), 1);
  shape[1] = t.sizes()[0];
  return t.reshape(shape);
}
OptionalTensor per_channel(const OptionalTensor& t, int64_t rank) {
  return t && t->defined() ? OptionalTensor(per_channel(*t, rank)) : std::nullopt;
}

void group_norm_rule(Call& call) {
  const Tensor x = call.tensor(0);
  const int64_t n = call.args[3].toInt(), groups = call.args[6].toInt();
  const int64_t count = groups == 0 || n == 0 ? 0 : x.numel() / (n * groups);
  const Tensor rows = x.reshape({n, groups, count});
  const Tensor mean = mean_over(rows, {2});
  const Tensor rstd = at::rsqrt(at::add(var_over(rows, {2}), call.args[7].toDouble()));
  const Tensor out = at::mul(at::sub(rows, mean), rstd).reshape(x.sizes());
  call.give_batched(
      affine(out, per_channel(call.optional(1), x.dim()), per_channel(call.optional(2), x.dim())));
  call.give_batched(mean.squeeze(2));
  call.give_batched(rstd.squeeze(2));
}

void group_norm_backward_rule(Call& call) {
  const Tensor grad = call.tensor(0), x = call.tensor(1);
  const Tensor mean = call.tensor(2).unsqueeze(2), rstd = call.tensor(3).unsqueeze(2);
  const OptionalTensor weight = per_channel(call.optional(4), x.dim());
  const int64_t n = call.args[5].toInt(), groups = call.args[8].toInt();
  const std::vector<bool> mask = call.args[9].toBoolList();
  const Tensor xhat = at::mul(at::sub(x.reshape({n, groups, -1}), mean), rstd);
  Dims others{0};
  for (int64_t d = 2; d < x.dim(); ++d) others.push_back(d);
  Tensor at_x, at_weight, at_bias;
  if (mask[0]) {
    const Tensor g = weight ? at::mul(grad, *weight) : grad;
    at_x = normalized_grad(g.reshape({n, groups, -1}), xhat, rstd, {2}).reshape(x.sizes());
  }
  if (mask[1]) at_weight = sum_over(at::mul(grad, xhat.reshape(x.sizes())), others);
  if (mask[2]) at_bias = sum_over(grad, others);
  for (const Tensor& t : {at_x, at_weight, at_bias}) call.results.emplace_back(t);
}

// ---- batch norm
struct Statistics {
  Tensor mean, invstd;
  Dims over; // every dimension but that of channels
};

void update_running(const Call& call, const Tensor& running, const Tensor& now, double momentum) {
  TORCH_CHECK(
      call.batched(running) || !call.batched(now),
      "Batch norm got a batched tensor as input while the running_mean or running_var, which will "
      "be updated in place, were not batched.\nIf you are using a module and do not need eval "
      "mode, please set `track_running_stats` to be False.\nIf you are using a prebuilt module "
      "and do not need eval mode, please see the functorch website for resources on how to patch "
      "your module to work with vmap");
  running.copy_(at::add(at::mul(running, 1 - momentum), at::mul(now, momentum)));
}

Statistics statistics(const Call& call, const Tensor& x, const OptionalTensor& running_mean,
                      const OptionalTensor& running_var, bool training, double momentum,
                      double eps) {
  Statistics s;
  s.over.push_back(0);
  for (int64_t d = 2; d < x.dim(); ++d) s.over.push_back(d);
  if (!training && running_mean && running_mean->defined()) {
    // The operator has no gradient at its running statistics.
    s.mean = running_mean->detach();
    s.invstd = at::rsqrt(at::add(running_var->detach(), eps));
    return s;
  }
  const Tensor mean = mean_over(x, s.over), var = var_over(x, s.over);
  s.mean = mean.reshape({x.sizes()[1]});
  s.invstd = at::rsqrt(at::add(var, eps)).reshape({x.sizes()[1]});
  if (running_mean && running_mean->defined()) {
    const double count = static_cast<double>(x.numel()) / static_cast<double>(x.sizes()[1]);
    update_running(call, *running_mean, s.mean, momentum);
    update_running(call, *running_var, at::mul(var.reshape({x.sizes()[1]}), count / (count - 1)),
                   momentum);
  }
  return s;
}

void batch_norm_rule(Call& call) {
  const Tensor x = call.tensor(0);
  const int mean_at = call.find("running_mean"), training_at = call.find("training");
  OptionalTensor running_mean, running_var;
  if (mean_at >= 0) {
    running_mean = call.optional(static_cast<size_t>(mean_at));
    running_var = call.optional(static_cast<size_t>(mean_at) + 1);
  }
  const bool training = training_at >= 0 && call.args[training_at].toBool();
  const Statistics s = statistics(call, x, running_mean, running_var, training,
                                  call.args[call.find("momentum")].toDouble(),
                                  call.args[call.find("eps")].toDouble());
  const Tensor out =
      at::mul(at::sub(x, per_channel(s.mean, x.dim())), per_channel(s.invstd, x.dim()));
  call.give_batched(
      affine(out, per_channel(call.optional(1), x.dim()), per_channel(call.optional(2), x.dim())));
  const Tensor none = training ? Tensor() : s.mean.narrow(0, 0, 0);
  call.give_batched(training ? s.mean : none);
  call.give_batched(training ? s.invstd : none);
}

void batch_norm_backward_rule(Call& call) {
  const Tensor grad = call.tensor(0), x = call.tensor(1);
  const OptionalTensor weight = per_channel(call.optional(2), x.dim());
  const bool train = call.args[7].toBool();
  const std::vector<bool> mask = call.args[9].toBoolList();
  Statistics s;
  if (train) {
    s.mean = call.tensor(5);
    s.invstd = call.tensor(6);
    s.over.push_back(0);
    for (int64_t d = 2; d < x.dim(); ++d) s.over.push_back(d);
  } else {
    s = statistics(call, x, call.optional(3), call.optional(4), false, 0, call.args[8].toDouble());
  }
  const Tensor mean = per_channel(s.mean, x.dim()), invstd = per_channel(s.invstd, x.dim());
  const Tensor xhat = at::mul(at::sub(x, mean), invstd);
  Tensor at_x, at_weight, at_bias;
  if (mask[0]) {
    const Tensor g = weight ? at::mul(grad, *weight) : grad;
    at_x = train ? normalized_grad(g, xhat, invstd, s.over) : at::mul(g, invstd);
  }
  if (mask[1]) at_weight = sum_over(at::mul(grad, xhat), s.over);
  if (mask[2]) at_bias = sum_over(grad, s.over);
  for (const Tensor& t : {at_x, at_weight, at_bias}) call.results.emplace_back(t);
}
} // namespace

ArrayRef<RuleEntry> norm_rules() {
  static const RuleEntry entries[] = {
      {"native_layer_norm", layer_norm_rule, 0},
      {"native_layer_norm_backward", layer_norm_backward_rule, 0},
      {"_fused_rms_norm", rms_norm_rule, 0},
      {"_fused_rms_norm_backward", rms_norm_backward_rule, 0},
      {"native_group_norm", group_norm_rule, 0},
      {"native_group_norm_backward", group_norm_backward_rule, 0},
      {"native_batch_norm _native_batch_norm_legit _native_batch_norm_legit.no_stats "
       "_native_batch_norm_legit_no_training",
       batch_norm_rule, 0},
      {"native_batch_norm_backward", batch_norm_backward_rule, 0},
  };
  return entries;
}

} // namespace at::functorch
