// Tensors saved for the backward pass. See variable.h.
#include <torch/csrc/autograd/variable.h>

#include <ATen/ops/detach.h>
#include <torch/csrc/autograd/forward_mode.h>
#include <torch/csrc/autograd/view_nodes.h>
#include <torch/csrc/autograd/visible_detach.h>

namespace torch::autograd {

Tensor visible_detach(const Tensor& t) {
  const c10::DispatchKeySet python(c10::DispatchKey::Python);
  const c10::LocalDispatchKeySet& local = c10::tls_dispatch_keys;
  const uint64_t seen = (t.key_set().raw() | local.included) & ~local.excluded & python.raw();
  if (C10_LIKELY(seen == 0)) return autograd::detach(t);
  c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys);
  const Tensor out = at::detach(t);
  if (out.is_same(t)) return autograd::detach(t);
  out.unsafeGetTensorImpl()->share_version_of(*t.unsafeGetTensorImpl());
  return out;
}

SavedTensorHooks::~SavedTensorHooks() = default;
std::shared_ptr<SavedTensorHooks> (*current_saved_tensor_hooks)() = nullptr;

SavedVariable::SavedVariable(const Tensor& t, bool is_output) {
  if (!t.defined()) return;
  TORCH_CHECK(
      !t.is_inference(),
      "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
      "inference mode in computation tracked by autograd. To work around this, you can make a "
      "clone to get a normal "
      "tensor and use it in autograd, or use `torch.no_grad()` instead of "
      "`torch.inference_mode()`.");
  was_undefined_ = false;
  version_ = t.unsafeGetTensorImpl()->version();
  requires_grad_ = t.requires_grad();
  is_output_ = is_output;
  if (is_output && meta_of(t)) output_nr_ = meta_of(t)->output_nr;
  if (C10_UNLIKELY(current_saved_tensor_hooks != nullptr)) {
    if (std::shared_ptr<SavedTensorHooks> hooks = current_saved_tensor_hooks()) {
      packed_ = std::make_unique<Packed>();
      packed_->value = hooks->pack(is_output ? visible_detach(t) : t);
      packed_->hooks = std::move(hooks);
      if (!is_output) packed_->edge = gradient_edge(t);
      return;
    }
  }
  // An output is kept without its history, which is the node that saves it: the graph must not own
  // itself. Outputs that have no gradient have none.
  data_ = is_output && requires_grad_ ? visible_detach(t) : t;
}
SavedVariable::~SavedVariable() {
  if (packed_) release_node(std::move(packed_->edge.function));
}

void SavedVariable::reset() {
  data_.reset();
  if (packed_) release_node(std::move(packed_->edge.function));
  packed_.reset();
  released_ = true;
}

void SavedVariable::register_hooks(std::shared_ptr<SavedTensorHooks> hooks, Node* owner) {
  TORCH_CHECK(!was_undefined_,
              "Calling register_hooks on a saved tensor with value None is forbidden");
  TORCH_CHECK(!released_, "Calling register_hooks on a saved tensor after it has been freed. Saved "
                          "intermediate values of the graph are freed when you call .backward() or "
                          "autograd.grad(); retain_graph=True keeps them.");
  TORCH_CHECK(!packed_, "Calling register_hooks on a saved tensor whose hooks have already been "
                        "set. Hint: only one pair of hooks is allowed at a time.");
  const uint32_t now = data_.unsafeGetTensorImpl()->version();
  if (now != version_) throw_modified(now, owner);
  // The hook is the user's code, which may free the graph this belongs to: the tensor is held.
  const Tensor held = data_;
  auto fresh = std::make_unique<Packed>();
  fresh->value = hooks->pack(held);
  fresh->hooks = std::move(hooks);
  if (!is_output_) fresh->edge = gradient_edge(held);
  if (released_ || packed_) {
    release_node(std::move(fresh->edge.function));
    return;
  }
  packed_ = std::move(fresh);
  data_.reset();
}

Tensor SavedVariable::with_history(const Tensor& plain, const Edge& edge) const {
  Tensor out = visible_detach(plain);
  AutogradMeta& meta = ensure_meta(out);
  if (dynamic_cast<AccumulateGrad*>(edge.function.get())) {
    meta.requires_grad = true;
    meta.grad_accumulator = c10::weak_intrusive_ptr<Node>(edge.function);
  } else {
    meta.grad_fn = edge.function;
    meta.output_nr = edge.input_nr;
  }
  out.unsafeGetTensorImpl()->set_autograd_key(true);
  if (const Tensor tangent = tangent_of(plain); C10_UNLIKELY(tangent.defined()))
    carry_tangent(out, tangent);
  return out;
}

Tensor SavedVariable::unpack(Node* owner) const {
  if (was_undefined_) return {};
  TORCH_CHECK(!released_, "Trying to backward through the graph a second time (or directly access "
                          "saved tensors after they "
                          "have already been freed). Saved intermediate values of the graph are "
                          "freed when you call .backward() or "
                          "autograd.grad(). Specify retain_graph=True if you need to backward "
                          "through the graph a second time or if you "
                          "need to access saved tensors after calling backward.");
  const bool own_output = is_output_ && owner != nullptr;
  if (packed_) {
    // The hook is the user's code, which may free the graph this belongs to: what is needed after
    // it is taken before.
    const Packed packed = *packed_;
    Edge history;
    if (requires_grad_)
      history = own_output ? Edge{c10::intrusive_ptr<Node>::unsafe_retain(owner), output_nr_}
                           : packed.edge;
    const Tensor out = packed.hooks->unpack(packed.value);
    return history.is_valid() ? with_history(out, history) : out;
  }
  const uint32_t now = data_.unsafeGetTensorImpl()->version();
  if (C10_UNLIKELY(now != version_)) throw_modified(now, owner);
  if (!own_output || !requires_grad_) return data_;
  if (c10::tls_autograd_state.grad_mode)
    if (auto history = history_of_written_view(owner, data_))
      return with_history(data_, {std::move(history), 0});
  return with_history(data_, {c10::intrusive_ptr<Node>::unsafe_retain(owner), output_nr_});
}

namespace {
void describe(std::string& text, const char* what, const Node& node) {
  text += c10::str("\n  ", what, node.name());
  const std::string where = node.anomaly() ? node.anomaly()->where() : std::string();
  if (!where.empty()) text += c10::str(" in the forward call:\n", where);
}
} // namespace

void SavedVariable::throw_modified(uint32_t now, Node* owner) const {
  std::string text = "one of the variables needed for gradient computation has been modified by an "
                     "inplace operation: [torch.";
  c10::append(text, data_.scalar_type());
  text += "Tensor ";
  c10::append(text, data_.sizes());
  text += "]";
  const c10::intrusive_ptr<Node> fn = is_output_ ? nullptr : grad_fn_of(data_);
  const std::string made_by = fn                    ? forward_name(*fn)
                              : is_output_ && owner ? forward_name(*owner)
                                                    : std::string();
  if (!made_by.empty())
    text += c10::str(", which is output ", is_output_ ? output_nr_ : meta_of(data_)->output_nr,
                     " of ", made_by, ",");
  text += c10::str(" is at version ", now, "; expected version ", version_, " instead.");
  text += anomaly_mode().enabled ? " Hint: the backtrace further above shows the operation that "
                                   "failed to compute its gradient. The variable in "
                                   "question was changed in there or anywhere later. Good luck!"
                                 : " Hint: enable anomaly detection to find the operation that "
                                   "failed to compute its gradient, with "
                                   "torch.autograd.set_detect_anomaly(True, check_nan=False).";
  // A history younger than the node that saved the tensor is that of the write.
  if (fn && owner && fn->sequence_nr() > owner->sequence_nr()) describe(text, "written by ", *fn);
  if (owner) describe(text, "saved by ", *owner);
  throw c10::Error(text);
}

} // namespace torch::autograd
