// The wrapper tensor of the key Functionalize and the kernel of that key. See FunctionalTensor.h.
#include <ATen/functional/FunctionalTensor.h>

#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/_native_batch_norm_legit_no_training.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lift_fresh.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/new_empty.h>
#include <ATen/ops/resize.h>
#include <ATen/ops/set.h>
#include <ATen/ops/slice_scatter.h>

namespace at::functional {
namespace {

constexpr DispatchKey kKey = DispatchKey::Functionalize;

thread_local bool views_reapplied = false, crosschecks = false;

DispatchKeySet keys_for(const Tensor& value) {
  const DispatchKeySet kept =
      value.key_set() &
      (c10::kBackendKeys | DispatchKeySet{DispatchKey::Conjugate, DispatchKey::Negative});
  return kept.add(kKey);
}

class TensorSpace final : public Space {
 public:
  Cell* cell(const Tensor& t) const override {
    FunctionalImpl* impl = functional_impl(t);
    return impl != nullptr ? &impl->cell : nullptr;
  }
  Tensor make(Cell cell, const Tensor& like) const override {
    return make_tensor<FunctionalImpl>(std::move(cell), like);
  }
  void changed(const Tensor& t, Cell& cell, const Tensor* like) const override {
    FunctionalImpl* impl = functional_impl(t);
    if (like != nullptr) impl->look_like(*like);
    impl->set_storage(cell.alias->storage);
  }
  // As at::detail::view_of marks views.
  void viewed(const Tensor& of, const Tensor& out, bool many) const override {
    using Origin = TensorImpl::ViewOrigin;
    const TensorImpl& source = *of.unsafeGetTensorImpl();
    if (source.is_inference()) return;
    TensorImpl* impl = out.unsafeGetTensorImpl();
    impl->set_view_of(source.is_view() ? source.base() : of.getIntrusivePtr());
    if (!c10::tls_autograd_state.grad_mode) impl->view_origin = Origin::NoGrad;
    if (many) impl->view_origin = Origin::MultiOutput;
    if (source.is_view() && source.view_origin != Origin::Default)
      impl->view_origin = source.view_origin;
  }
  void detached(const Tensor& of, const Tensor& out) const override {
    if (of.unsafeGetTensorImpl()->is_inference()) return;
    out.unsafeGetTensorImpl()->share_version_of(*of.unsafeGetTensorImpl());
  }
  bool wraps_results(bool any, bool tensors) const override { return any || !tensors; }
  bool copies_views() const override { return !views_reapplied; }
  DispatchKeySet keys_off() const override { return DispatchKeySet(kKey); }
};

// ---- operators with rules of their own
bool any_functional(const Stack& stack, size_t from) {
  bool any = false;
  for (size_t i = from; i < stack.size(); ++i)
    each_tensor(stack[i], [&](const Tensor& t) { any = any || functional_impl(t) != nullptr; });
  return any;
}

// A tensor made from Python values becomes one of the program.
void run_lift(const OperatorEntry& op, Stack& stack) {
  if (functional_impl(stack.back().toTensor()) != nullptr) return; // returned as it is
  c10::ExcludeDispatchKeyGuard below{DispatchKeySet(kKey)};
  op.call_boxed(stack);
  stack.back() = IValue(to_functional(stack.back().toTensor()));
}

// A contiguous tensor without data, which nobody watches.
Tensor shape_of(IntArrayRef sizes, ScalarType dtype) {
  c10::ExcludeDispatchKeyGuard plain(DispatchKeySet{kKey, DispatchKey::Python, DispatchKey::Fake});
  return at::empty(sizes, dtype, Layout::Strided, Device(DeviceType::Meta), std::nullopt,
                   std::nullopt);
}

// Fewer elements are a view of the memory; more are new memory that begins with the old.
void run_resize(Stack& stack, size_t from) {
  const Tensor self = stack[from].toTensor();
  Cell& cell = *sync(self, tensor_space());
  const std::vector<int64_t> sizes = stack[from + 1].toIntList();
  const Tensor shape = shape_of(sizes, self.scalar_type());
  const int64_t bytes = (self.storage_offset() + shape.numel()) * self.itemsize();
  if (bytes <= static_cast<int64_t>(cell.alias->storage->nbytes())) {
    const Tensor view = at::as_strided(self, shape.sizes(), shape.strides(), self.storage_offset());
    cell = functional_impl(view)->cell;
    tensor_space().changed(self, cell, &view);
  } else {
    TORCH_CHECK(!self.unsafeGetTensorImpl()->is_view(),
                "Attempted to resize a view tensor to a larger size. This is not allowed in the "
                "functionalization pass");
    c10::ExcludeDispatchKeyGuard below{DispatchKeySet(kKey)};
    const Tensor flat = cell.value.reshape({-1});
    Stack made{flat, IValue(shape.sizes()), {}, {}, {}, {}};
    _ops::new_empty::entry.call_boxed(made);
    Tensor grown = made[0].toTensor();
    if (flat.numel() > 0)
      grown = at::slice_scatter(grown.reshape({-1}), flat, 0, 0, flat.numel(), 1)
                  .reshape(shape.sizes());
    cell = Cell{grown, std::make_shared<Alias>(grown), {}, 0};
    tensor_space().changed(self, cell, &grown);
    ++cell.alias->writes;
  }
  cell.metadata_written = true;
  self.unsafeGetTensorImpl()->bump_version();
  stack.resize(from + 1);
}

void check_results(const OperatorEntry& op, const Stack& stack, size_t from) {
  for (size_t i = from; i < stack.size(); ++i) {
    each_tensor(stack[i], [&](const Tensor& t) {
      const FunctionalImpl* impl = functional_impl(t);
      if (impl == nullptr || impl->has_symbolic_sizes()) return;
      const Cell* cell = sync(t, tensor_space());
      TORCH_CHECK(cell->value.sizes() == t.sizes() &&
                      cell->value.scalar_type() == t.scalar_type() &&
                      cell->value.device() == t.device(),
                  op.full_name(), ": a functional tensor of shape ", t.sizes(), " and dtype ",
                  t.scalar_type(), " has a value of shape ", cell->value.sizes(), " and dtype ",
                  cell->value.scalar_type());
      TORCH_CHECK(impl->storage().get() == cell->alias->storage.get(), op.full_name(),
                  ": a functional tensor has another storage than its memory");
    });
  }
}

// Whether a tensor handles operators in Python and is no tensor of the key: it may wrap such
// tensors.
bool any_wrapper(const Stack& stack, size_t from) {
  bool any = false;
  for (size_t i = from; i < stack.size(); ++i)
    each_tensor(stack[i], [&](const Tensor& t) {
      any = any || (t.key_set().has(DispatchKey::Python) && functional_impl(t) == nullptr);
    });
  return any;
}

// native_batch_norm writes to the running statistics although its schema does not say so.
const OperatorEntry& honest_batch_norm(Stack& stack, size_t from) {
  const IValue& mean = stack[from + 3];
  if (!mean.isTensor() || !mean.toTensor().defined()) {
    stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(from) + 3,
                stack.begin() + static_cast<std::ptrdiff_t>(from) + 5);
    return _ops::_native_batch_norm_legit_no_stats::entry;
  }
  if (stack[from + 5].toBool()) return _ops::_native_batch_norm_legit::entry;
  stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(from) + 5);
  return _ops::_native_batch_norm_legit_no_training::entry;
}

class FunctionalizeKernel final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const size_t from = stack.size() - op.schema().arguments.size();
    if (is_composite(op)) {
      op.redispatch_boxed(keys.remove(kKey), stack);
      return;
    }
    if (&op == &_ops::lift_fresh::entry) return run_lift(op, stack);
    if (any_wrapper(stack, from)) {
      op.redispatch_boxed(keys.remove(kKey), stack);
      return;
    }
    const bool functional = any_functional(stack, from);
    if (functional && &op == &_ops::native_batch_norm::entry) {
      return run(honest_batch_norm(stack, from), stack, from, tensor_space());
    }
    if (functional && functional_impl_at(stack, from)) {
      if (&op == &_ops::resize_::entry) return run_resize(stack, from);
      if (&op == &_ops::set__source_Tensor::entry) {
        set_memory(stack[from].toTensor(), stack[from + 1].toTensor());
        stack.resize(from + 1);
        return;
      }
    }
    run(op, stack, from, tensor_space());
    if (C10_UNLIKELY(crosschecks)) check_results(op, stack, from);
  }

 private:
  static bool functional_impl_at(const Stack& stack, size_t from) {
    return stack[from].isTensor() && functional_impl(stack[from].toTensor()) != nullptr;
  }
};

void register_kernel() {
  static const c10::intrusive_ptr<BoxedKernel> kernel = c10::make_intrusive<FunctionalizeKernel>();
  Dispatcher& dispatcher = Dispatcher::singleton();
  if (dispatcher.fallback(kKey) != kernel) dispatcher.register_fallback(kKey, kernel);
}
} // namespace

FunctionalImpl::FunctionalImpl(Cell inner, const Tensor& like)
    : TensorImpl(inner.alias->storage, keys_for(inner.value), inner.value.scalar_type(),
                 inner.value.device()),
      cell(std::move(inner)) {
  set_inference(cell.value.is_inference());
  set_wrapped_number(cell.value.unsafeGetTensorImpl()->is_wrapped_number());
  look_like(like);
}

void FunctionalImpl::look_like(const Tensor& like) {
  const TensorImpl& from = *like.unsafeGetTensorImpl();
  if (from.has_symbolic_sizes()) {
    set_symbolic_geometry(from.sym_sizes(), from.sym_strides(), from.sym_storage_offset());
  } else if (like.layout() == Layout::Strided) {
    set_geometry(like.sizes(), like.strides(), like.storage_offset());
  } else {
    set_contiguous(like.sizes());
  }
  set_layout(like.layout());
  set_dtype(like.scalar_type());
}

void FunctionalImpl::copy_metadata_from(const TensorImpl& from) {
  const auto* other = dynamic_cast<const FunctionalImpl*>(&from);
  TORCH_CHECK_NOT_IMPLEMENTED(other != nullptr, "the data of a functional tensor cannot be "
                                                "replaced by a tensor that is not functional");
  cell = other->cell;
  cell.storage_changed = cell.metadata_written = true;
  if (from.has_symbolic_sizes()) {
    set_symbolic_geometry(from.sym_sizes(), from.sym_strides(), from.sym_storage_offset());
  } else {
    set_geometry(from.sizes(), from.strides(), from.storage_offset());
  }
  set_layout(from.layout());
  set_dtype(from.dtype());
  set_storage(cell.alias->storage);
}

c10::intrusive_ptr<TensorImpl> FunctionalImpl::shallow_copy() const {
  auto out = c10::make_intrusive<FunctionalImpl>(cell, cell.value);
  if (has_symbolic_sizes()) {
    out->set_symbolic_geometry(sym_sizes(), sym_strides(), sym_storage_offset());
  } else if (layout() == Layout::Strided) {
    out->set_geometry(sizes(), strides(), storage_offset());
  }
  return out;
}

void FunctionalImpl::release_resources() {
  cell = Cell();
  TensorImpl::release_resources();
}

FunctionalImpl* functional_impl(const Tensor& t) {
  if (!t.defined() || !t.key_set().has(kKey)) return nullptr;
  return dynamic_cast<FunctionalImpl*>(t.unsafeGetTensorImpl());
}

const Space& tensor_space() {
  static const TensorSpace space;
  return space;
}

Tensor to_functional(const Tensor& t) {
  register_kernel();
  TORCH_CHECK(functional_impl(t) == nullptr, "the tensor is a functional tensor already");
  return wrap(t, tensor_space());
}

bool set_crosschecks(bool on) { return std::exchange(crosschecks, on); }
bool reapplies_views() { return views_reapplied; }
bool set_reapplies_views(bool on) { return std::exchange(views_reapplied, on); }

bool is_enabled() { return (c10::tls_dispatch_keys.included & DispatchKeySet(kKey).raw()) != 0; }
void set_enabled(bool on) {
  register_kernel();
  const uint64_t bit = DispatchKeySet(kKey).raw();
  uint64_t& included = c10::tls_dispatch_keys.included;
  included = on ? included | bit : included & ~bit;
}

void set_memory(const Tensor& t, const Tensor& source) {
  FunctionalImpl* impl = functional_impl(t);
  TORCH_CHECK(impl != nullptr, "set_(): expected a functional tensor");
  const Tensor from = functional_impl(source) != nullptr ? source : to_functional(source);
  sync(from, tensor_space());
  impl->cell = functional_impl(from)->cell;
  impl->cell.metadata_written = impl->cell.storage_changed = true;
  ++impl->cell.alias->storage_changes;
  tensor_space().changed(t, impl->cell, &from);
  impl->bump_version();
}

void resize_memory(const Tensor& t, size_t nbytes) {
  FunctionalImpl* impl = functional_impl(t);
  TORCH_CHECK(impl != nullptr, "expected a functional tensor");
  Alias& alias = *impl->cell.alias;
  alias.storage->set_data(c10::DataPtr(nullptr, t.device()), nbytes);
  ++alias.storage_resizes;
}

} // namespace at::functional
