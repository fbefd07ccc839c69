// Autograd metadata of tensors. See variable.h.
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <mutex>

#include <ATen/core/HandlerKeys.h>
#include <ATen/ops/_indices.h>
#include <ATen/ops/_values.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/detach.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/new_empty_strided.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/NestedRelease.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/set_grad.h>
#include <torch/csrc/autograd/view_nodes.h>

namespace torch::autograd {

TensorHook::~TensorHook() = default;
AutogradMeta::~AutogradMeta() {
  if (grad_fn) release_node(std::move(grad_fn));
  // A gradient may have a gradient, and so on.
  for (Tensor* owned : {&grad, &forward_grad}) {
    if (owned->use_count() != 1) continue;
    c10::release_nested([](void* impl) { static_cast<c10::TensorImpl*>(impl)->decref(); },
                        owned->take_impl().release());
  }
}

namespace {
std::mutex accumulator_mutex;
using Origin = c10::TensorImpl::ViewOrigin;

Tensor base_of(const Tensor& t) { return Tensor(t.unsafeGetTensorImpl()->base()); }
} // namespace

AutogradMeta& ensure_meta(const Tensor& t) {
  TORCH_CHECK(t.defined(), "autograd: undefined tensor");
  if (AutogradMeta* meta = meta_of(t)) return *meta;
  auto fresh = std::make_unique<AutogradMeta>();
  AutogradMeta& out = *fresh;
  t.unsafeGetTensorImpl()->set_autograd_meta(std::move(fresh));
  return out;
}

c10::AutogradMetaInterface* ViewQueries::described(c10::TensorImpl& tensor) {
  static_assert(static_cast<int>(CreationMeta::IN_CUSTOM_FUNCTION) ==
                static_cast<int>(Origin::Custom));
  if (!tensor.is_view()) return std::as_const(tensor).autograd_meta();
  AutogradMeta& meta =
      ensure_meta(Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_retain(&tensor)));
  meta.is_view = true;
  meta.creation = static_cast<CreationMeta>(tensor.view_origin);
  return &meta;
}

namespace {
// Some views cannot follow a write to their memory: those of a function with several outputs, of
// custom functions, and those made where nothing was recorded. `what` says which write was made.
void check_view_origin(const Tensor& t, const char* what) {
  const Origin origin = t.unsafeGetTensorImpl()->view_origin;
  if (C10_LIKELY(origin == Origin::Default || origin == Origin::MultiOutputSafe)) return;
  const AutogradMeta* meta = meta_of(t);
  const std::string output =
      c10::str("Output ", meta ? meta->output_nr : 0, " of ",
               meta && meta->grad_fn ? forward_name(*meta->grad_fn) : "a function");
  if (origin == Origin::Inference || origin == Origin::NoGrad) {
    // A view made while gradients were recorded is of this kind because its base is.
    const bool no_grad = origin == Origin::NoGrad;
    const std::string view = meta && meta->grad_fn
                                 ? output + " is a view of a view which was created"
                                 : "A view was created";
    throw c10::Error(c10::str(
        view, no_grad ? " in no_grad mode and " : " in inference mode and ", what,
        no_grad ? " with grad mode enabled" : " in normal mode",
        ". Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the ",
        no_grad ? "no_grad" : "inference_mode",
        " block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked)."));
  }
  if (const auto* unknown =
          dynamic_cast<const NotImplemented*>(meta ? meta->grad_fn.get() : nullptr))
    throw c10::Error(c10::str("Mutating the view ", unknown->forward_name(),
                              " which does not have a derivative implemented is forbidden."));
  const std::string view = c10::str(output, " is a view and ", what, ". ");
  TORCH_CHECK(origin != Origin::Custom, view,
              "This view was created inside a custom Function (or because an input was returned "
              "as-is) and the autograd "
              "logic to handle view+inplace would override the custom backward associated with the "
              "custom Function, leading "
              "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
              "output of the custom "
              "Function.");
  TORCH_CHECK(origin != Origin::MultiOutput, view,
              "This view is the output of a function that returns multiple views. Such functions "
              "do not allow the output "
              "views to be modified inplace. You should replace the inplace operation by an "
              "out-of-place one.");
}
} // namespace

namespace {
// The tensor gets another history by an in-place write. Its hooks stay with the value before the
// write, to which they were given; a retained gradient is that of the present value.
void leave_hooks_behind(AutogradMeta& meta, Node& now, uint32_t number) {
  meta.hooks.clear();
  if (!meta.retains_grad || !meta.grad_fn || !meta.grad_fn->hooks()) return;
  auto& from = meta.grad_fn->hooks()->retain_grad;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i]->input_index != static_cast<int>(meta.output_nr)) continue;
    std::shared_ptr<NodeHook> hook = from[i];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    hook->input_index = static_cast<int>(number);
    now.ensure_hooks().retain_grad.push_back(std::move(hook));
    return;
  }
}
} // namespace

// Note [In-place writes and views]
// All views of a base share its version counter. A view remembers the version at which its grad_fn
// was made; when the counter moved on, the base's history has changed under it (rebase_history made
// it a CopySlices), and the view's gradient must flow through that: its new grad_fn is the
// as_strided of the base that it is.
c10::intrusive_ptr<Node> grad_fn_of(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  if (C10_LIKELY(!t.is_view())) return meta ? meta->grad_fn : nullptr;
  const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
  const uint32_t version = impl->version();
  const uint32_t seen = meta && meta->grad_fn ? meta->attr_version : impl->version_when_viewed();
  if (C10_LIKELY(seen == version)) return meta ? meta->grad_fn : nullptr;
  // What was written in inference mode is in no history: within the mode the view's own is shown.
  const bool is_mode = c10::tls_autograd_state.inference_mode;
  if (is_mode && impl->view_origin == Origin::Inference) return meta ? meta->grad_fn : nullptr;
  const Tensor base = base_of(t);
  const bool stale = meta_of(base) && meta_of(base)->grad_fn;
  // A view of a leaf, made and written where nothing was recorded, has no history to show.
  const bool unknown = impl->view_origin == Origin::NoGrad && base.requires_grad();
  if (!stale && !unknown) return meta ? meta->grad_fn : nullptr;
  check_view_origin(t, "its base or another view of its base has been modified inplace");
  auto node = make_view_replay(t, base);
  AutogradMeta& fresh = ensure_meta(t);
  const uint32_t number = node->add_input_metadata(t);
  leave_hooks_behind(fresh, *node, number);
  fresh.grad_fn = node;
  fresh.output_nr = number;
  fresh.attr_version = version;
  return node;
}

bool is_leaf(const Tensor& t) { return !grad_fn_of(t); }

c10::intrusive_ptr<Node> grad_accumulator(const Tensor& t) {
  if (!t.requires_grad()) return nullptr;
  AutogradMeta* meta = &ensure_meta(t);
  // A view that was made without grad mode has neither history nor a gradient of its own.
  if (meta->grad_fn || (t.is_view() && !meta->requires_grad)) return nullptr;
  std::lock_guard<std::mutex> lock(accumulator_mutex);
  if (c10::intrusive_ptr<Node> node = meta->grad_accumulator.lock()) return node;
  auto node = c10::make_intrusive<AccumulateGrad>(t);
  meta->grad_accumulator = c10::weak_intrusive_ptr<Node>(node);
  return node;
}

Edge gradient_edge(const Tensor& t) {
  if (!t.defined() || !t.requires_grad()) return {};
  if (c10::intrusive_ptr<Node> fn = grad_fn_of(t)) return {std::move(fn), meta_of(t)->output_nr};
  return {grad_accumulator(t), 0};
}

void set_requires_grad(const Tensor& t, bool value) {
  TORCH_CHECK(is_leaf(t) || value,
              "you can only change requires_grad flags of leaf variables. If you want to use a "
              "computed variable in a subgraph that doesn't require differentiation use "
              "var_no_grad = var.detach().");
  if (!is_leaf(t)) return;
  TORCH_CHECK(!value || t.is_floating_point() || t.is_complex(),
              "only Tensors of floating point and complex dtype can require gradients");
  TORCH_CHECK(
      !value || !t.is_inference() || c10::tls_autograd_state.inference_mode,
      "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!value && !meta_of(t)) return;
  ensure_meta(t).requires_grad = value;
  t.unsafeGetTensorImpl()->set_autograd_key(value);
}

void set_history(const Tensor& t, const c10::intrusive_ptr<Node>& node) {
  if (!t.defined()) {
    node->add_input_metadata(t);
    return;
  }
  AutogradMeta& meta = ensure_meta(t);
  const uint32_t number = node->add_input_metadata(t);
  if (C10_UNLIKELY(!meta.hooks.empty() || meta.retains_grad))
    leave_hooks_behind(meta, *node, number);
  meta.grad_fn = node;
  meta.output_nr = number;
  meta.attr_version = t.is_view() ? t.unsafeGetTensorImpl()->version() : 0;
  t.unsafeGetTensorImpl()->set_autograd_key(true);
}

void rebase_history(const Tensor& t, const c10::intrusive_ptr<Node>& node) {
  if (!t.is_view()) {
    set_history(t, node);
    return;
  }
  node->add_input_metadata(t);
  const Tensor base = base_of(t);
  auto copy_slices = make_copy_slices(base, t, node);
  set_history(base, copy_slices);
  // The view's own function is made anew from the base's; its hooks stay with the old one.
  AutogradMeta& meta = ensure_meta(t);
  auto replay = make_view_replay(t, base);
  const uint32_t number = replay->add_input_metadata(t);
  leave_hooks_behind(meta, *replay, number);
  meta.output_nr = number;
  meta.grad_fn = std::move(replay);
  meta.attr_version = t.unsafeGetTensorImpl()->version();
}

void check_inplace(const Tensor& t, bool recorded) {
  if (!c10::tls_autograd_state.grad_mode) return;
  TORCH_CHECK(!t.is_inference() || c10::tls_autograd_state.inference_mode,
              "Inplace update to inference tensor outside InferenceMode is not allowed."
              "You can make a clone to get a normal tensor before doing inplace update.");
  const Tensor base = t.is_view() ? base_of(t) : Tensor();
  if (t.requires_grad() && !base.defined() && is_leaf(t))
    throw c10::Error("a leaf Variable that requires grad is being used in an in-place operation.");
  if (!recorded || !base.defined()) return;
  check_view_origin(t, "is being modified inplace");
  TORCH_CHECK(
      !(t.requires_grad() && is_leaf(base)),
      "a view of a leaf Variable that requires grad is being used in an in-place operation.");
}

Tensor detach(const Tensor& t) {
  c10::intrusive_ptr<at::TensorImpl> impl = t.unsafeGetTensorImpl()->shallow_copy();
  impl->share_version_of(*t.unsafeGetTensorImpl());
  return Tensor(std::move(impl));
}
Tensor variable_data(const Tensor& t) { return Tensor(t.unsafeGetTensorImpl()->shallow_copy()); }

namespace {
// Guards the gradients of all tensors: two passes on two threads may end at one leaf, and a program
// may set a gradient to None while another thread adds to it. Whoever has to wait lets other
// threads run Python. Recursive, because adding may run Python code of a tensor's class.
class AccumulationLock {
 public:
  AccumulationLock() {
    if (C10_LIKELY(mutex().try_lock())) return;
    at::BlockingRegion waiting;
    mutex().lock();
  }
  ~AccumulationLock() { mutex().unlock(); }
  AccumulationLock(const AccumulationLock&) = delete;
  AccumulationLock& operator=(const AccumulationLock&) = delete;

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex one;
    return one;
  }
};
} // namespace

void set_grad(const Tensor& t, Tensor grad) {
  const AccumulationLock lock;
  AutogradMeta* meta = grad.defined() ? &ensure_meta(t) : meta_of(t);
  if (meta) std::swap(meta->grad, grad); // the old one ends after the lock
}

// ---- hooks ------------------------------------------------------------------------------------
uint64_t register_hook(const Tensor& t, std::shared_ptr<TensorHook> hook) {
  TORCH_CHECK(t.requires_grad(),
              "cannot register a hook on a tensor that doesn't require gradient");
  AutogradMeta& meta = ensure_meta(t);
  hook->id = meta.next_hook_id++;
  const uint64_t id = hook->id;
  const c10::intrusive_ptr<Node> fn = grad_fn_of(t);
  if (!fn) {
    meta.hooks.push_back(std::move(hook));
    return id;
  }
  struct Adapter final : NodeHook {
    explicit Adapter(std::shared_ptr<TensorHook> h) : hook(std::move(h)) {}
    void call(TensorVec& inputs, TensorVec&) override {
      // A gradient that does not exist is None to the hook.
      if (Tensor replaced = hook->call(inputs[input_index]); replaced.defined())
        inputs[input_index] = replaced;
    }
    std::shared_ptr<TensorHook> hook;
  };
  auto adapter = std::make_shared<Adapter>(hook);
  adapter->input_index = static_cast<int>(meta.output_nr);
  adapter->id = id;
  fn->ensure_hooks().tensor_pre.push_back(std::move(adapter));
  meta.hooks.push_back(std::move(hook));
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return;
  auto drop = [](auto& list, auto&& matches) {
    list.erase(
        std::remove_if(list.begin(), list.end(), [&](const auto& hook) { return matches(*hook); }),
        list.end());
  };
  drop(meta->hooks, [&](const TensorHook& hook) { return hook.id == id; });
  drop(meta->post_accumulate, [&](const TensorHook& hook) { return hook.id == id; });
  if (!meta->grad_fn || !meta->grad_fn->hooks()) return;
  const int index = static_cast<int>(meta->output_nr);
  drop(meta->grad_fn->hooks()->tensor_pre,
       [&](const NodeHook& hook) { return hook.id == id && hook.input_index == index; });
}

void clear_hooks(const Tensor& t) {
  const AutogradMeta* meta = meta_of(t);
  if (!meta) return;
  const std::vector<std::shared_ptr<TensorHook>> list = meta->hooks;
  for (const auto& hook : list) remove_hook(t, hook->id);
}

void retain_grad(const Tensor& t) {
  TORCH_CHECK(t.requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  const c10::intrusive_ptr<Node> fn = grad_fn_of(t);
  AutogradMeta& meta = ensure_meta(t);
  if (!fn || meta.retains_grad) return;
  struct Retain final : NodeHook {
    void call(TensorVec& inputs, TensorVec&) override {
      const Tensor& grad = inputs[input_index];
      if (!grad.defined()) return;
      // Weak: the graph must not keep its own outputs alive.
      if (auto impl = target.lock()) {
        const Tensor tensor{std::move(impl)};
        const AccumulationLock lock;
        const Tensor before = ensure_meta(tensor).grad;
        Tensor sum = before.defined() ? at::add(before, grad) : at::clone(grad);
        ensure_meta(tensor).grad = std::move(sum);
      }
    }
    c10::weak_intrusive_ptr<at::TensorImpl> target;
  };
  auto hook = std::make_shared<Retain>();
  hook->target = c10::weak_intrusive_ptr<at::TensorImpl>(t.getIntrusivePtr());
  hook->input_index = static_cast<int>(meta.output_nr);
  fn->ensure_hooks().retain_grad.push_back(std::move(hook));
  meta.retains_grad = true;
}

// ---- accumulation -----------------------------------------------------------------------------
AccumulateGrad::AccumulateGrad(Tensor variable) : variable_(std::move(variable)) {
  add_input_metadata(variable_);
  // After every other node that is ready: the accumulation sees the whole sum.
  set_sequence_nr(UINT64_MAX);
}

void AccumulateGrad::run_tensor_hooks(TensorVec& grads) {
  const AutogradMeta* meta = meta_of(variable_);
  if (!meta || meta->hooks.empty() || !grads[0].defined()) return;
  const std::vector<std::shared_ptr<TensorHook>> list = meta->hooks;
  for (const auto& hook : list) {
    if (Tensor replaced = hook->call(grads[0]); replaced.defined()) grads[0] = std::move(replaced);
  }
}

TensorVec AccumulateGrad::apply(TensorVec grads) {
  Tensor grad = std::move(grads[0]);
  if (!grad.defined() || !variable_.requires_grad()) return {};
  accumulate_grad(variable_, std::move(grad), c10::tls_autograd_state.grad_mode);
  const AutogradMeta* meta = meta_of(variable_);
  if (C10_UNLIKELY(meta && !meta->post_accumulate.empty())) {
    const std::vector<std::shared_ptr<TensorHook>> list = meta->post_accumulate;
    for (const auto& hook : list) hook->call(variable_);
  }
  return {};
}

namespace {
bool has_dense_parts(const Tensor& sparse) {
  if (sparse.layout() != at::Layout::Sparse) return true;
  return at::_ops::_indices::call(sparse).is_contiguous() &&
         at::_ops::_values::call(sparse).is_contiguous();
}
// The first gradient of a leaf where handlers look on. They have met every tensor: it is kept if
// nobody else holds it and it lies in memory as the leaf does, under a new identity, and copied
// otherwise.
Tensor first_grad_shown(const Tensor& leaf, const Tensor& grad, bool same_order) {
  if (grad.use_count() == 1 && same_order) return at::detach(grad);
  if (!leaf.is_non_overlapping_and_dense()) return grad.clone(at::MemoryFormat::Contiguous);
  Tensor copy =
      at::_ops::new_empty_strided::call(grad, leaf.sym_sizes(), leaf.sym_strides(), std::nullopt,
                                        std::nullopt, std::nullopt, std::nullopt);
  return copy.copy_(grad);
}
} // namespace

void accumulate_grad(const Tensor& leaf, Tensor grad, bool create_graph) {
  const AccumulationLock lock;
  AutogradMeta& meta = ensure_meta(leaf);
  // A reference of its own: code that runs inside of the addition may set another gradient.
  if (Tensor before = meta.grad; before.defined()) {
    if (before.layout() != at::kStrided && grad.layout() == at::kStrided) {
      meta.grad = at::add(grad, before);
    } else if (create_graph) {
      meta.grad = at::add(before, grad);
    } else {
      at::_ops::add__Tensor::call(before, grad, 1);
    }
    return;
  }
  if (create_graph) {
    meta.grad = at::clone(grad);
    return;
  }
  if (C10_UNLIKELY(grad.layout() != at::kStrided)) {
    // Numbers that lie close together may be kept; expanded ones would be added to several times.
    const bool wraps = grad.key_set().has(c10::DispatchKey::Python);
    const bool own = grad.use_count() == 1 && !wraps && has_dense_parts(grad);
    meta.grad = own ? autograd::detach(grad) : at::clone(grad);
    return;
  }
  // Stolen when nobody else holds it and it already lies in memory as the leaf does; copied
  // otherwise.
  const bool same_order = grad.sym_strides() == leaf.sym_strides() ||
                          (!leaf.is_non_overlapping_and_dense() && grad.is_contiguous());
  if (C10_UNLIKELY(at::handlers_active())) {
    meta.grad = first_grad_shown(leaf, grad, same_order);
    return;
  }
  if (grad.use_count() == 1 && same_order && grad.is_non_overlapping_and_dense() &&
      !grad.is_view() && grad.storage().use_count() == 1) {
    meta.grad = grad.requires_grad() ? autograd::detach(grad) : std::move(grad);
    return;
  }
  if (grad.key_set().has(c10::DispatchKey::Python)) {
    meta.grad = grad.clone(); // of its own kind, whatever it wraps
  } else if (leaf.is_non_overlapping_and_dense()) {
    Tensor copy = at::empty_strided_symint(leaf.sym_sizes(), leaf.sym_strides(), grad.scalar_type(),
                                           at::kStrided, grad.device(), std::nullopt);
    copy.copy_(grad);
    meta.grad = std::move(copy);
  } else {
    meta.grad = grad.clone(at::MemoryFormat::Contiguous);
  }
}

} // namespace torch::autograd

namespace at::native {
// Declared by the operator list: detach_ of a tensor that has a history.
Tensor& detach_autograd_(Tensor& self);
Tensor& detach_autograd_(Tensor& self) {
  TORCH_CHECK(!self.is_view(), "Can't detach views in-place. Use detach() instead. If you are "
                               "using DistributedDataParallel (DDP) "
                               "for training, and gradient_as_bucket_view is set as True, "
                               "gradients are views of DDP buckets, and hence detach_() "
                               "cannot be called on these gradients. To fix this error, please "
                               "refer to the Optimizer.zero_grad() function in "
                               "torch/optim/optimizer.py as the solution.");
  torch::autograd::AutogradMeta& meta = torch::autograd::ensure_meta(self);
  torch::autograd::release_node(std::move(meta.grad_fn));
  meta.grad_fn.reset();
  meta.requires_grad = false;
  meta.output_nr = 0;
  self.unsafeGetTensorImpl()->set_autograd_key(false);
  return self;
}
} // namespace at::native
