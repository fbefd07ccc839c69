// See custom_function.h.
#include <torch/csrc/autograd/custom_function.h>

#include <cxxabi.h>

#include <cstdlib>

#include <ATen/ops/alias.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/engine.h>

namespace torch::autograd {
namespace {

using Origin = c10::TensorImpl::ViewOrigin;

bool contains(const variable_list& list, const Tensor& t) {
  for (const Tensor& item : list)
    if (item.is_same(t)) return true;
  return false;
}

std::string readable(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  const std::string out = status == 0 ? text : mangled;
  std::free(text);
  return out;
}
} // namespace

variable_list AutogradContext::get_saved_variables() const {
  TORCH_CHECK(!released_, "Trying to backward through the graph a second time (or directly access "
                          "saved tensors after they have "
                          "already been freed). Specify retain_graph=True if you need to backward "
                          "through the graph a second time.");
  variable_list out;
  for (const SavedVariable& saved : saved_) out.push_back(saved.unpack(node_));
  return out;
}

bool AutogradContext::needs_input_grad(size_t i) const {
  TORCH_CHECK_INDEX(node_ != nullptr && i < node_->num_outputs(),
                    "needs_input_grad: forward has no tensor argument ", i);
  if (!node_->should_compute_output(i)) return false;
  return current_node() != node_ || is_wanted(node_, i);
}
bool AutogradContext::needs_input_grad(std::initializer_list<IndexRange> ranges) const {
  for (const auto& [begin, end] : ranges)
    for (size_t i = begin; i < end; ++i)
      if (needs_input_grad(i)) return true;
  return false;
}

void check_dirty_view(const Tensor& t, size_t outputs) {
  TORCH_CHECK(outputs == 1 || !t.is_view() || !t.requires_grad(),
              "If your Function modifies inplace an input that is a view of another Tensor, your "
              "Function cannot return more than one Tensor: the history of the other Tensor can "
              "follow one result only. Clone the input, or split the Function in two, of which "
              "the first writes and returns that one Tensor.");
}

Tensor record_custom_output(const Tensor& t, bool is_input, bool is_dirty,
                            const c10::intrusive_ptr<Node>& node) {
  if (is_dirty && !is_input) {
    TORCH_WARN("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
               "have been mutated should be passed to ctx.mark_dirty().");
  } else if (is_dirty) {
    rebase_history(t, node);
    return t;
  }
  Tensor out = t;
  if (is_input) {
    const bool before = std::exchange(c10::tls_autograd_state.grad_mode, false);
    out = at::alias(t);
    c10::tls_autograd_state.grad_mode = before;
  }
  if (out.is_view()) out.unsafeGetTensorImpl()->view_origin = Origin::Custom;
  set_history(out, node);
  return out;
}

TensorVec CustomNode::apply(TensorVec grads) {
  variable_list list;
  for (size_t i = 0; i < grads.size(); ++i) {
    const InputMetadata& meta = input_metadata(i);
    const bool zeros = !grads[i].defined() && context.materialize_grads_ &&
                       meta.dtype != at::ScalarType::Undefined;
    list.push_back(
        zeros ? at::zeros_symint(meta.sizes, meta.dtype, meta.layout, meta.device, std::nullopt)
              : grads[i]);
  }
  variable_list found = backward_(&context, std::move(list));
  TORCH_CHECK(found.size() == is_tensor.size(), "function ", name_,
              " returned an incorrect number of gradients (expected ", is_tensor.size(), ", got ",
              found.size(), ")");
  TensorVec out;
  for (size_t i = 0; i < found.size(); ++i) {
    TORCH_CHECK(is_tensor[i] || !found[i].defined(), "function ", name_,
                " returned a gradient different from None at position ", i + 1,
                ", but the corresponding forward input was not a Variable");
    if (is_tensor[i]) out.push_back(std::move(found[i]));
  }
  return out;
}

void CustomNode::release_variables() {
  context.saved_.clear();
  context.released_ = true;
}

CustomCall::CustomCall(CustomBackward backward, std::string name)
    : node_(c10::make_intrusive<CustomNode>(backward, readable(name))) {
  node_->context.node_ = node_.get();
}

void CustomCall::add(const Tensor& t) {
  node_->is_tensor.push_back(true);
  node_->add_next_edge(c10::tls_autograd_state.grad_mode ? gradient_edge(t) : Edge());
  inputs_.push_back(t);
  recorded_ = recorded_ || (c10::tls_autograd_state.grad_mode && t.defined() && t.requires_grad());
}

variable_list CustomCall::finish(variable_list outputs) {
  AutogradContext& context = node_->context;
  for (const Tensor& t : context.dirty_) {
    if (recorded_) check_dirty_view(t, outputs.size());
    if (recorded_) check_inplace(t, true);
    t.unsafeGetTensorImpl()->bump_version();
    TORCH_CHECK(
        contains(outputs, t),
        "Some elements marked as dirty during the forward method were not returned as output. The "
        "inputs that are modified inplace must all be outputs of the Function.");
  }
  if (recorded_) {
    for (Tensor& t : outputs) {
      const bool differentiable = t.defined() && (t.is_floating_point() || t.is_complex()) &&
                                  !contains(context.non_differentiable_, t);
      if (differentiable) {
        t = record_custom_output(t, contains(inputs_, t), contains(context.dirty_, t), node_);
      } else {
        if (t.defined() && t.requires_grad() && contains(inputs_, t)) t = detach(t);
        node_->add_input_metadata(t);
      }
    }
    for (const Tensor& t : context.to_save_)
      context.saved_.emplace_back(t, t.defined() && grad_fn_of(t).get() == node_.get());
  }
  context.to_save_.clear();
  context.dirty_.clear();
  context.non_differentiable_.clear();
  return outputs;
}

} // namespace torch::autograd
