// Tangents through operators, by Note [Tangents from gradients]: an operator runs in a grad level
// of its own, whose gradient, differentiated once more, takes the tangents of the inputs to those
// of the results. Since the grad level nests in others, so do jvp levels, and tangents can be
// batched and differentiated like any tensor.
#include <torch/csrc/functorch/jvp.h>

#include <cstring>

#include <ATen/core/Dispatcher.h>
#include <ATen/functorch/Interpret.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/engine.h>

namespace torch::functorch {
namespace {

using namespace at::functorch;
using at::IValue;
using at::Stack;
using at::Tensor;
using Tensors = std::vector<Tensor>;

struct GradModeOn {
  GradModeOn() : before(c10::tls_autograd_state.grad_mode) {
    c10::tls_autograd_state.grad_mode = true;
  }
  ~GradModeOn() { c10::tls_autograd_state.grad_mode = before; }
  bool before;
};
struct InnerLevel {
  InnerLevel() : level(push_level(LevelKind::Grad)) {}
  ~InnerLevel() { pop_level(LevelKind::Grad); }
  InnerLevel(const InnerLevel&) = delete;
  InnerLevel& operator=(const InnerLevel&) = delete;
  LevelPtr level;
};

bool is_hidden_state(const std::string& name) {
  return name == "running_mean" || name == "running_var" || name == "noise";
}
bool has_gradient(const at::OperatorEntry& op) {
  return op.has_kernel(c10::DispatchKey::Autograd) || op.has_kernel(c10::DispatchKey::AutogradCPU);
}

// A call whose arguments are taken apart into values and tangents.
struct JvpCall {
  const at::OperatorEntry& op;
  const at::FunctionSchema& schema;
  Stack args;
  LevelPtr level;

  Tensor value(const Tensor& t) const {
    const WrapperImpl* w = wrapper_at(t, *level);
    return w != nullptr ? w->value : t;
  }
  Tensor tangent(const Tensor& t) const {
    const WrapperImpl* w = wrapper_at(t, *level);
    return w != nullptr ? w->tangent : Tensor();
  }
  bool any_tangent() const {
    if (!c10::tls_autograd_state.fw_grad_mode) return false;
    bool any = false;
    for (const IValue& v : args)
      each_tensor(v, [&](const Tensor& t) { any = any || tangent(t).defined(); });
    return any;
  }
  Stack values() const {
    Stack out = args;
    for (IValue& v : out) map_tensors(v, [&](const Tensor& t) { return value(t); });
    return out;
  }
  bool mutates() const { return (op.flags & at::kOpMutates) != 0; }
};

struct Trial {
  Tensors inputs, directions, outputs; // of the inner level
  Stack results;                       // outside of it
};

Tensor out_of(const Tensor& t, const at::functorch::Level& level) {
  const WrapperImpl* w = wrapper_at(t, level);
  return w != nullptr ? w->value : t;
}

Trial run_trial(const JvpCall& call, const LevelPtr& inner) {
  Trial trial;
  Stack stack = call.args;
  for (size_t i = 0; i < stack.size(); ++i) {
    const bool written = writes(call.schema, i);
    const bool own = is_hidden_state(call.schema.arguments[i].name) || written;
    map_tensors(stack[i], [&](const Tensor& t) {
      const Tensor value = call.value(t), tangent = call.tangent(t);
      if (!tangent.defined() && written) return wrap_grad(at::clone(value), inner);
      if (!tangent.defined()) return own ? at::clone(value) : value;
      const Tensor fresh = wrap_grad(value, inner);
      autograd::set_requires_grad(fresh, true);
      trial.inputs.push_back(fresh);
      trial.directions.push_back(tangent);
      return own ? at::clone(fresh) : fresh;
    });
  }
  call.op.call_boxed(stack);
  trial.results = std::move(stack);
  for (IValue& v : trial.results) {
    if (v.isNone()) trial.outputs.emplace_back();
    each_tensor(v, [&](const Tensor& t) { trial.outputs.push_back(t); });
    map_tensors(v, [&](const Tensor& t) { return out_of(t, *inner); });
  }
  return trial;
}

// J t for each output, undefined where an output does not depend on the inputs.
Tensors push_forward(const Trial& trial, const LevelPtr& inner) {
  Tensors out(trial.outputs.size()), used, weights;
  std::vector<size_t> places;
  for (size_t i = 0; i < trial.outputs.size(); ++i) {
    const Tensor& y = trial.outputs[i];
    if (!y.defined() || !y.requires_grad()) continue;
    const Tensor weight = wrap_grad(at::ones_like(out_of(y, *inner)), inner);
    autograd::set_requires_grad(weight, true);
    used.push_back(y);
    weights.push_back(weight);
    places.push_back(i);
  }
  if (used.empty()) return out;
  const Tensors slopes = autograd::grad(used, trial.inputs, weights, true, true, true);
  Tensors linear, directions;
  for (size_t k = 0; k < slopes.size(); ++k) {
    if (!slopes[k].defined() || !slopes[k].requires_grad()) continue;
    linear.push_back(slopes[k]);
    directions.push_back(wrap_grad(trial.directions[k], inner));
  }
  Tensors found(weights.size());
  if (!linear.empty()) found = autograd::grad(linear, weights, directions, true, true, true);
  for (size_t k = 0; k < found.size(); ++k) {
    Tensor t =
        found[k].defined() ? out_of(found[k], *inner) : at::zeros_like(out_of(weights[k], *inner));
    // In-place operators write tangents, which must therefore not be those of the inputs.
    for (const Tensor& d : trial.directions)
      if (d.is_same(t)) t = at::clone(t);
    out[places[k]] = t.is_view() ? at::clone(t) : t;
  }
  return out;
}

// The tangents of a view are the same view of the tangents, so that writes reach them.
void run_view(const JvpCall& call, Stack& results) {
  Stack primal = call.values(), dual = primal;
  const Tensor base = call.args[0].toTensor();
  dual[0] = IValue(call.tangent(base));
  call.op.call_boxed(primal);
  call.op.call_boxed(dual);
  for (size_t i = 0; i < primal.size(); ++i) {
    Tensors tangents;
    each_tensor(dual[i], [&](const Tensor& t) { tangents.push_back(t); });
    size_t k = 0;
    map_tensors(primal[i], [&](const Tensor& t) {
      Tensor out = wrap_jvp(t, tangents[k++], call.level);
      const auto& whole = base.getIntrusivePtr();
      out.unsafeGetTensorImpl()->set_view_of(base.is_view() ? whole->base() : whole);
      return out;
    });
    results.push_back(std::move(primal[i]));
  }
}

// Zeros that may be written with what belongs to any vmap level around the jvp level: jacfwd has
// one for all tangents.
Tensor writable_zeros(const Tensor& value, const at::functorch::Level& inner) {
  Tensor zeros = at::zeros_like(value);
  if (wrapper_of(value) != nullptr) return zeros;
  for (const LevelPtr& level : level_stack()) {
    if (level->kind != LevelKind::Vmap || level->id >= inner.id) continue;
    c10::DimVector sizes(zeros.sizes());
    sizes.insert(sizes.begin(), level->batch_size);
    zeros = wrap_batched(at::clone(zeros.unsqueeze(0).expand(sizes)), 0, level);
  }
  return zeros;
}

// A tensor that was made inside of the level has no tangent until one is written to it. Its views
// must find what is written then.
void give_zero_tangent(const JvpCall& call) {
  WrapperImpl* w = wrapper_at(call.args[0].toTensor(), *call.level);
  if (w == nullptr || w->tangent.defined() || !c10::tls_autograd_state.fw_grad_mode) return;
  if (w->value.is_floating_point() || w->value.is_complex())
    w->tangent = writable_zeros(w->value, *call.level);
}

void write_tangent(const JvpCall& call, const Tensor& self, const Tensor& tangent) {
  WrapperImpl* w = wrapper_at(self, *call.level);
  w->refresh();
  w->bump_version();
  if (w->tangent.defined()) {
    if (tangent.defined()) {
      w->tangent.copy_(tangent);
    } else {
      w->tangent.zero_();
    }
    return;
  }
  if (!tangent.defined()) return;
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_view(), call.op.full_name(),
                              ": a view of a tensor without a tangent cannot be given one by an "
                              "in-place operation");
  w->tangent = tangent;
}

void check_captured(const JvpCall& call) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!writes(call.schema, i)) continue;
    each_tensor(call.args[i], [&](const Tensor& t) {
      TORCH_CHECK(wrapper_at(t, *call.level) != nullptr,
                  "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted "
                  "to call in-place operation (",
                  call.op.full_name(),
                  ") that would mutate a captured Tensor. This is not supported; please rewrite "
                  "the function being transformed to explicitly accept the mutated Tensor(s) as "
                  "inputs.");
    });
  }
}

// squeeze_ and its like change the geometry of a tensor and not its elements: the tangent's changes
// in the same way. What the caller gave as a tangent keeps its own.
void run_inplace_view(const JvpCall& call, Stack& results) {
  check_captured(call);
  WrapperImpl* w = wrapper_at(call.args[0].toTensor(), *call.level);
  Stack primal = call.values(), dual = primal;
  call.op.call_boxed(primal);
  if (w->tangent.defined()) {
    const Tensor own = at::alias(w->tangent);
    dual[0] = IValue(own);
    call.op.call_boxed(dual);
    w->tangent = own;
  }
  w->refresh();
  w->bump_version();
  results.push_back(call.args[0]);
}

// detach_ ends the tangent, and as_strided_ counts in memory, which tangents lay out on their own.
bool is_inplace_view(const at::OperatorEntry& op) {
  if (std::strstr(op.tags_text, "inplace_view") == nullptr) return false;
  return std::strcmp(op.name, "aten::detach_") != 0 &&
         std::strcmp(op.name, "aten::as_strided_") != 0;
}

void run_mutating(const JvpCall& call, Stack& results) {
  check_captured(call);
  Tensors tangents;
  if (call.any_tangent() && has_gradient(call.op)) {
    InnerLevel inner;
    GradModeOn on;
    tangents = push_forward(run_trial(call, inner.level), inner.level);
  }
  Stack stack = call.values();
  call.op.call_boxed(stack);
  size_t k = 0;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!writes(call.schema, i)) continue;
    each_tensor(call.args[i], [&](const Tensor& t) {
      write_tangent(call, t, k < tangents.size() ? tangents[k] : Tensor());
      ++k;
    });
    if (results.size() < call.schema.returns.size()) results.push_back(call.args[i]);
  }
}

void run_plain(const JvpCall& call, Stack& results) {
  if (!call.any_tangent() || !has_gradient(call.op)) {
    Stack stack = call.values();
    call.op.call_boxed(stack);
    results = std::move(stack);
    return;
  }
  InnerLevel inner;
  Trial trial;
  Tensors tangents;
  {
    GradModeOn on;
    trial = run_trial(call, inner.level);
    tangents = push_forward(trial, inner.level);
  }
  size_t k = 0;
  for (IValue& v : trial.results) {
    if (v.isNone()) ++k;
    map_tensors(v, [&](const Tensor& t) {
      const Tensor tangent = tangents[k++];
      return tangent.defined() ? wrap_jvp(t, tangent, call.level) : t;
    });
    results.push_back(std::move(v));
  }
}

void run(const at::OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level) {
  const JvpCall call{op, op.schema(),
                     Stack(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end()), level};
  Stack results;
  if ((op.flags & at::kOpView) != 0 && call.args[0].isTensor()) give_zero_tangent(call);
  const bool view = (op.flags & at::kOpView) != 0 && call.args[0].isTensor() &&
                    call.tangent(call.args[0].toTensor()).defined() && call.any_tangent() &&
                    op.name != std::string("aten::detach");
  if (is_inplace_view(op)) {
    run_inplace_view(call, results);
  } else if (call.mutates()) {
    run_mutating(call, results);
  } else if (view) {
    run_view(call, results);
  } else {
    run_plain(call, results);
  }
  stack.resize(from);
  for (IValue& v : results) stack.push_back(std::move(v));
}
} // namespace

void enable_jvp() { at::functorch::jvp_kernel = &run; }

} // namespace torch::functorch
