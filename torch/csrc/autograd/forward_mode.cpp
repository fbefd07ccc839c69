// See forward_mode.h.
#include <torch/csrc/autograd/forward_mode.h>

#include <cstring>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceHooks.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/raw_saved.h>

namespace torch::autograd {
namespace {

using at::IValue;
using Tensors = std::vector<Tensor>;

// Marks tensors with a tangent. The first key dispatched before Autograd.
constexpr c10::DispatchKey kDualKey = c10::DispatchKey::ForwardGrad;
constexpr c10::DispatchKeySet kDualKeys{kDualKey};

struct Level {
  int64_t number = -1; // none open
  std::vector<c10::weak_intrusive_ptr<at::TensorImpl>> duals;
};
thread_local Level level;

void unmark(const Tensor& t) {
  at::TensorImpl* impl = t.unsafeGetTensorImpl();
  impl->set_key_set(impl->key_set().remove(kDualKey));
}
void set_tangent(const Tensor& t, Tensor tangent) {
  AutogradMeta& meta = ensure_meta(t);
  meta.forward_grad = std::move(tangent);
  meta.forward_level = static_cast<uint64_t>(level.number);
  at::TensorImpl* impl = t.unsafeGetTensorImpl();
  impl->set_key_set(impl->key_set().add(kDualKey));
  level.duals.emplace_back(t.getIntrusivePtr());
}

struct GradModeGuard {
  explicit GradModeGuard(bool on) : before(c10::tls_autograd_state.grad_mode) {
    c10::tls_autograd_state.grad_mode = on;
  }
  ~GradModeGuard() { c10::tls_autograd_state.grad_mode = before; }
  bool before;
};

// ---- arguments and results on a stack
template <class F> void visit_tensors(IValue& value, const F& f) {
  if (value.isTensor()) {
    value = IValue(f(value.toTensor()));
  } else if (value.isTensorList()) {
    Tensors list = value.toTensorList();
    for (Tensor& t : list) t = t.defined() ? f(t) : t;
    value = IValue(std::move(list));
  } else if (value.isOptionalTensorList()) {
    auto list = value.toOptionalTensorList();
    for (auto& t : list)
      if (t && t->defined()) t = f(*t);
    value = IValue(std::move(list));
  }
}
Tensors tensors_on(at::Stack& stack) {
  Tensors out;
  for (IValue& value : stack) {
    visit_tensors(value, [&](const Tensor& t) {
      out.push_back(t);
      return t;
    });
  }
  return out;
}

// Arguments that an operator changes without saying so must not be changed twice.
bool is_hidden_state(const std::string& name) {
  return name == "running_mean" || name == "running_var" || name == "noise";
}

// The operator on inputs of its own, with what is needed to take their tangents to its results.
struct Trial {
  Tensors inputs, tangents, outputs;
};

Trial run_trial(const at::OperatorEntry& op, const at::Stack& arguments) {
  Trial trial;
  at::Stack stack = arguments;
  const auto& schema = op.schema();
  const bool mutates = (op.flags & at::kOpMutates) != 0;
  for (size_t i = 0; i < stack.size(); ++i) {
    const bool own_copy = is_hidden_state(schema.arguments[i].name) || (mutates && i == 0);
    visit_tensors(stack[i], [&](const Tensor& t) {
      const Tensor tangent = tangent_of(t);
      Tensor fresh = detach(t);
      unmark(fresh);
      if (tangent.defined()) {
        set_requires_grad(fresh, true);
        trial.inputs.push_back(fresh);
        trial.tangents.push_back(tangent);
      }
      return own_copy ? at::clone(fresh) : fresh;
    });
  }
  op.call_boxed(stack);
  trial.outputs = tensors_on(stack);
  return trial;
}

// J t for each output; undefined where an output does not depend on the inputs.
Tensors push_forward(const Trial& trial) {
  Tensors out(trial.outputs.size()), used, weights;
  std::vector<size_t> places;
  for (size_t i = 0; i < trial.outputs.size(); ++i) {
    const Tensor& y = trial.outputs[i];
    if (!y.defined() || !y.requires_grad()) continue;
    // Any weight would do; formulas that take logarithms of it need one that is not zero.
    Tensor weight = at::ones_like(detach(y));
    set_requires_grad(weight, true);
    used.push_back(y);
    weights.push_back(weight);
    places.push_back(i);
  }
  if (used.empty()) return out;
  const Tensors slopes = grad(used, trial.inputs, weights, true, true, true);
  Tensors linear, directions;
  for (size_t k = 0; k < slopes.size(); ++k) {
    if (!slopes[k].defined() || !slopes[k].requires_grad()) continue;
    linear.push_back(slopes[k]);
    directions.push_back(trial.tangents[k]);
  }
  Tensors found(weights.size());
  if (!linear.empty())
    found = grad(linear, weights, directions, c10::tls_autograd_state.grad_mode, false, true);
  for (size_t k = 0; k < found.size(); ++k)
    out[places[k]] = found[k].defined() ? found[k] : at::zeros_like(weights[k]);
  return out;
}

// A random operator runs twice, on trial and for good, and has to draw the same numbers: puts the
// state of its generator back when the trial is over.
class RandomStateGuard {
 public:
  RandomStateGuard(const at::OperatorEntry& op, const at::Stack& arguments) {
    if (std::strstr(op.tags_text, "nondeterministic_seeded") == nullptr) return;
    c10::Device device{c10::kCPU};
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].isNone()) continue;
      if (op.schema().arguments[i].type.kind == at::SchemaType::Kind::Generator) {
        generator_ = arguments[i].toGenerator();
      } else if (arguments[i].isTensor() && i == 0) {
        device = arguments[i].toTensor().device();
      }
    }
    if (!generator_) {
      generator_ = device.is_cpu()
                       ? at::detail::getDefaultCPUGenerator()
                       : c10::require_device_hooks(device.type()).default_generator(device.index());
    }
    std::lock_guard<std::mutex> lock(generator_->mutex);
    state_ = generator_->state();
  }
  ~RandomStateGuard() {
    if (!generator_) return;
    std::lock_guard<std::mutex> lock(generator_->mutex);
    generator_->set_state(state_.data(), state_.size());
  }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  c10::Generator generator_;
  std::vector<uint8_t> state_;
};

// The node of the outputs saved copies of them before they had tangents.
void share_with_nodes(const Tensors& outputs) {
  const Node* last = nullptr;
  for (const Tensor& out : outputs) {
    const AutogradMeta* meta = meta_of(out);
    Node* node = meta ? meta->grad_fn.get() : nullptr;
    if (node == nullptr || node == last) continue;
    last = node;
    for (const SavedField& field : node->saved_fields())
      for (size_t i = 0; i < saved_count(field, *node); ++i)
        share_tangents(saved_variable(field, *node, i), outputs);
  }
}

class DualKernel final : public at::BoxedKernel {
 public:
  void call(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) override {
    const c10::DispatchKeySet below = keys - kDualKeys;
    const size_t count = op.schema().arguments.size();
    const size_t from = stack.size() - count;
    bool dual = false;
    for (size_t i = from; i < stack.size(); ++i)
      visit_tensors(stack[i], [&](const Tensor& t) {
        dual = dual || tangent_of(t).defined();
        return t;
      });
    // Operators made of others are treated part by part, unless they have a formula of their own:
    // its kernel hides the parts from this one.
    if (!dual || !c10::tls_autograd_state.fw_grad_mode || !has_gradient(op)) {
      op.redispatch_boxed(below, stack);
      return;
    }
    c10::ExcludeDispatchKeyGuard guard(kDualKeys);
    const at::Stack arguments(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end());
    Tensors tangents;
    {
      RandomStateGuard same_numbers(op, arguments);
      GradModeGuard on(true);
      try {
        tangents = push_forward(run_trial(op, arguments));
      } catch (const c10::NotImplementedError& error) {
        throw c10::NotImplementedError(c10::str("Trying to use forward AD with ", op.name,
                                                " that does not support it: ", error.what()));
      }
    }
    op.redispatch_boxed(below, stack);
    at::Stack results(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end());
    const Tensors outputs = tensors_on(results);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (i < tangents.size() && tangents[i].defined()) {
        set_tangent(outputs[i], tangents[i]);
      } else if (!tangent_of(outputs[i]).defined()) {
        unmark(outputs[i]);
      }
    }
    share_with_nodes(outputs);
  }

 private:
  static bool has_gradient(const at::OperatorEntry& op) {
    return op.has_kernel(c10::DispatchKey::Autograd) ||
           op.has_kernel(c10::DispatchKey::AutogradCPU);
  }
};
} // namespace

bool dual_level_is_open() { return level.number >= 0; }

int64_t enter_dual_level() {
  TORCH_CHECK(level.number < 0, "Nested forward mode AD is not supported at the moment");
  static const uint64_t registered =
      at::Dispatcher::singleton().register_fallback(kDualKey, c10::make_intrusive<DualKernel>());
  (void)registered;
  return level.number = 0;
}

void exit_dual_level(int64_t number) {
  TORCH_CHECK(
      number == level.number,
      "Trying to exit a forward AD level that was not the last one that was created. This is not "
      "supported.");
  for (const auto& weak : level.duals) {
    c10::intrusive_ptr<at::TensorImpl> impl = weak.lock();
    if (!impl) continue;
    const Tensor t{std::move(impl)};
    ensure_meta(t).forward_grad = Tensor();
    unmark(t);
  }
  level.duals.clear();
  level.number = -1;
}

void share_tangents(const SavedVariable& saved, const Tensors& outputs) {
  for (const Tensor& out : outputs) {
    const Tensor tangent = tangent_of(out);
    if (!tangent.defined()) continue;
    const Tensor kept = saved.kept_output(meta_of(out)->output_nr);
    if (kept.defined() && kept.sizes() == tangent.sizes()) set_tangent(kept, tangent);
  }
}

Tensor tangent_of(const Tensor& t) {
  if (!t.defined() || !t.key_set().has(kDualKey)) return {};
  const AutogradMeta* meta = meta_of(t);
  return meta ? meta->forward_grad : Tensor();
}

void carry_tangent(const Tensor& t, const Tensor& tangent) {
  TORCH_CHECK(level.number >= 0, "a tangent needs an open level of forward mode");
  TORCH_CHECK(t.sizes() == tangent.sizes() && t.scalar_type() == tangent.scalar_type(),
              "jvp returned a tangent of size ", tangent.sizes(), " and dtype ",
              tangent.scalar_type(), " for an output of size ", t.sizes(), " and dtype ",
              t.scalar_type());
  set_tangent(t, tangent);
}

Tensor primal_of(const Tensor& t) {
  c10::ExcludeDispatchKeyGuard guard(kDualKeys);
  Tensor out = at::alias(t);
  unmark(out);
  return out;
}

namespace {
// The tangent with the strides and the lazy bits of the primal: views of the dual are views of
// both.
Tensor laid_out_like(const Tensor& primal, const Tensor& tangent) {
  const bool same_bits =
      primal.is_conj() == tangent.is_conj() && primal.is_neg() == tangent.is_neg();
  const bool strided = primal.layout() == at::kStrided && tangent.layout() == at::kStrided;
  const bool same_strides =
      !strided || primal.strides() == tangent.strides() || !primal.is_non_overlapping_and_dense();
  const bool batched = tangent.key_set().has(c10::DispatchKey::FuncTorchBatched);
  if (same_bits && (same_strides || batched)) return tangent;
  Tensor home = strided && !batched && primal.is_non_overlapping_and_dense()
                    ? at::empty_strided(primal.sizes(), primal.strides(), primal.scalar_type(),
                                        at::kStrided, primal.device(), std::nullopt)
                    : at::empty_like(tangent);
  if (primal.is_conj()) home = at::conj(home);
  if (primal.is_neg()) home = at::_neg_view(home);
  home.copy_(tangent);
  return home;
}
} // namespace

Tensor make_dual(const Tensor& primal, const Tensor& tangent, int64_t number) {
  TORCH_CHECK(level.number == number && number >= 0,
              "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
              "enter_dual_level() first.");
  TORCH_CHECK(primal.is_floating_point() || primal.is_complex(),
              "Expected primal to be floating point or complex, but got: ", primal.scalar_type());
  TORCH_CHECK(tangent.is_floating_point() || tangent.is_complex(),
              "Expected tangent to be floating point or complex, but got: ", tangent.scalar_type());
  TORCH_CHECK(
      !tangent_of(primal).defined(),
      "Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
      "level ",
      number, " is not supported.");
  TORCH_CHECK(
      primal.sizes() == tangent.sizes(),
      "Trying to set a forward gradient that has a different size than that of the original "
      "Tensor, this is not supported. Tensor is of size ",
      primal.sizes(), " while the given forward gradient is of size ", tangent.sizes(), ".");
  TORCH_CHECK(
      primal.scalar_type() == tangent.scalar_type() && primal.device() == tangent.device(),
      "Trying to set a forward gradient of another dtype or device than that of the Tensor: ",
      tangent, " for ", primal);
  Tensor out = primal_of(primal);
  set_tangent(out, laid_out_like(primal, tangent));
  return out;
}

} // namespace torch::autograd
