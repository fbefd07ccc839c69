// See ATen/core/UnregisteredAutograd.h. The kernel runs the operator with autograd still on: one
// whose kernel is written with differentiable operators has right gradients already, and they stay.
// A result without a history gets a node that warns and gives no gradients; one that has a history,
// or is a leaf, gets a hook that warns. Nothing is rebased, because nobody knows what was written.
#include <ATen/core/UnregisteredAutograd.h>

#include <atomic>

#include <torch/csrc/autograd/boxed_tensors.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
namespace {

std::atomic<UnregisteredMode> current_mode{UnregisteredMode::Warn};

void warn_unregistered(const std::string& op) {
  TORCH_WARN(op,
             ": an autograd kernel was not registered to the Autograd key(s) but we are trying to "
             "backprop through it. The gradients may be wrong or missing. If the operator is "
             "differentiable, register a kernel for Autograd or CompositeImplicitAutograd; if it "
             "is not, register a fallthrough kernel for Autograd.");
}

class WarnNotImplemented final : public Node {
 public:
  explicit WarnNotImplemented(std::string op) : op_(std::move(op)) {}
  std::string name() const override { return "WarnNotImplemented"; }
  TensorVec apply(TensorVec) override {
    warn_unregistered(op_);
    return TensorVec(num_outputs());
  }

 private:
  std::string op_;
};

struct WarnHook final : TensorHook {
  explicit WarnHook(std::string op) : op(std::move(op)) {}
  Tensor call(const Tensor& grad) override {
    if (grad.defined()) warn_unregistered(op);
    return {};
  }
  std::string op;
};

void mark_output(const std::string& op, const Tensor& t, bool written,
                 const c10::intrusive_ptr<Node>& node) {
  if (!is_differentiable(t)) return;
  if (t.requires_grad()) {
    register_hook(t, std::make_shared<WarnHook>(op));
    const Tensor base = written && t.is_view() ? Tensor(t.unsafeGetTensorImpl()->base()) : Tensor();
    if (base.defined() && base.requires_grad()) register_hook(base, std::make_shared<WarnHook>(op));
  } else if (!written) {
    set_history(t, node);
  }
}

class UnregisteredKernel final : public at::BoxedKernel {
 public:
  void call(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) override {
    const c10::DispatchKeySet below = keys - c10::kAutogradKeys;
    const at::FunctionSchema& schema = op.schema();
    const auto from = static_cast<std::ptrdiff_t>(stack.size() - schema.arguments.size());
    std::vector<Tensor> inputs;
    const bool warns = current_mode.load() == UnregisteredMode::Warn;
    if (warns && c10::tls_autograd_state.grad_mode)
      for (auto it = stack.begin() + from; it != stack.end(); ++it) add_tensors(inputs, *it);
    if (!needs_grad(inputs)) {
      op.redispatch_boxed(below, stack);
      return;
    }
    const std::string name = op.full_name();
    auto node = c10::make_intrusive<WarnNotImplemented>(name);
    for (const Tensor& t : inputs) node->add_next_edge(gradient_edge(t));
    op.redispatch_boxed(below, stack);
    for (size_t i = 0; i < schema.returns.size(); ++i) {
      std::vector<Tensor> outputs;
      add_tensors(outputs, stack[static_cast<size_t>(from) + i]);
      for (const Tensor& t : outputs) mark_output(name, t, is_written(schema.returns[i]), node);
    }
  }
};
} // namespace

UnregisteredMode unregistered_mode() { return current_mode.load(); }
void set_unregistered_mode(UnregisteredMode mode) { current_mode.store(mode); }

c10::intrusive_ptr<at::BoxedKernel> unregistered_autograd_kernel() {
  static const auto kernel = c10::make_intrusive<UnregisteredKernel>();
  return kernel;
}

} // namespace torch::autograd
