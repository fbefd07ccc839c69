// The level stack and wrapper tensors. See Level.h.
#include <ATen/functorch/Level.h>

#include <algorithm>
#include <atomic>

#include <ATen/core/InferenceCheck.h>
#include <ATen/functorch/Interpret.h>

namespace at::functorch {
namespace {

std::atomic<uint64_t> next_id{1};

std::vector<LevelPtr>& stack() {
  static thread_local std::vector<LevelPtr> levels;
  return levels;
}

void include(DispatchKey key, bool value) {
  const uint64_t bit = DispatchKeySet(key).raw();
  uint64_t& included = c10::tls_dispatch_keys.included;
  included = value ? included | bit : included & ~bit;
}
// A mode key tells operators without a wrapper among their arguments that a level is open: random
// ones that it is one of vmap, all that it is one of functionalize.
void update_mode_key(LevelKind kind, DispatchKey key) {
  bool any = false;
  for (const LevelPtr& level : stack()) any = any || level->kind == kind;
  include(key, any);
}
uint64_t& fresh_limit() {
  static thread_local uint64_t limit = UINT64_MAX;
  return limit;
}
void update_mode_keys() {
  update_mode_key(LevelKind::Vmap, DispatchKey::FuncTorchVmapMode);
  update_mode_key(LevelKind::Functionalize, kFunctionalizeMode);
  include(kFreshKey, level_of_fresh_tensors().defined());
}

const char* name_of(LevelKind kind) {
  switch (kind) {
  case LevelKind::Vmap:
    return "vmap";
  case LevelKind::Grad:
    return "grad";
  case LevelKind::Jvp:
    return "jvp";
  default:
    return "functionalize";
  }
}

DispatchKeySet keys_for(const Tensor& value, LevelKind kind) {
  const DispatchKeySet backend = value.key_set() & c10::kBackendKeys;
  switch (kind) {
  case LevelKind::Vmap:
    return backend.add(DispatchKey::FuncTorchBatched);
  case LevelKind::Grad:
    return backend.add(DispatchKey::FuncTorchGradWrapper).add(kBackKey);
  default:
    return backend.add(DispatchKey::FuncTorchGradWrapper);
  }
}
} // namespace

const std::vector<LevelPtr>& level_stack() { return stack(); }

LevelPtr level_of_fresh_tensors() {
  const auto& levels = stack();
  for (size_t i = levels.size(); i-- > 0;) {
    const LevelKind kind = levels[i]->kind;
    if (levels[i]->id >= fresh_limit()) continue;
    if (kind == LevelKind::Grad || kind == LevelKind::Jvp) return levels[i];
  }
  return nullptr;
}

BelowLevel::BelowLevel(const Level& level)
    : limit_(fresh_limit()),
      included_((c10::tls_dispatch_keys.included & DispatchKeySet(kFreshKey).raw()) != 0) {
  fresh_limit() = std::min(limit_, level.id);
  if (included_) include(kFreshKey, level_of_fresh_tensors().defined());
}
BelowLevel::~BelowLevel() {
  fresh_limit() = limit_;
  include(kFreshKey, included_);
}

LevelsSetAside::LevelsSetAside() {
  levels_.swap(stack());
  update_mode_keys();
}
LevelsSetAside::~LevelsSetAside() {
  levels_.swap(stack());
  update_mode_keys();
}

LevelPtr push_level(LevelKind kind, int64_t batch_size, Randomness randomness) {
  register_kernels(kind == LevelKind::Functionalize);
  LevelPtr level = c10::make_intrusive<Level>();
  level->kind = kind;
  level->id = next_id.fetch_add(1, std::memory_order_relaxed);
  level->depth = static_cast<int64_t>(stack().size()) + 1;
  level->batch_size = batch_size;
  level->randomness = randomness;
  level->grad_mode_outside = c10::tls_autograd_state.grad_mode;
  stack().push_back(level);
  update_mode_keys();
  return level;
}

int64_t pop_level(LevelKind kind) {
  TORCH_CHECK(!stack().empty(), "there is no ", name_of(kind), " level to leave");
  const LevelPtr level = stack().back();
  TORCH_CHECK(level->kind == kind, "the newest level is one of ", name_of(level->kind), ", not of ",
              name_of(kind));
  level->alive = false;
  stack().pop_back();
  update_mode_keys();
  return level->depth;
}

const LevelPtr& level_at(int64_t depth) {
  TORCH_CHECK(depth >= 1 && depth <= static_cast<int64_t>(stack().size()), "there is no level ",
              depth, "; ", stack().size(), " are open");
  return stack()[static_cast<size_t>(depth - 1)];
}

WrapperImpl::WrapperImpl(Tensor inner, LevelPtr owner, int64_t dim, Tensor inner_tangent)
    : TensorImpl(Storage(), keys_for(inner, owner->kind), inner.scalar_type(), inner.device()),
      value(std::move(inner)), tangent(std::move(inner_tangent)), level(std::move(owner)),
      bdim(dim) {
  set_inference(value.is_inference());
  if (!is_inference()) set_key_set(key_set().remove(kInferenceKey));
  set_wrapped_number(value.unsafeGetTensorImpl()->is_wrapped_number());
  refresh();
}

void WrapperImpl::refresh() {
  c10::DimVector sizes, strides;
  const bool strided = value.layout() == Layout::Strided;
  for (int64_t d = 0; d < value.dim(); ++d) {
    if (d == bdim) continue;
    sizes.push_back(value.sizes()[d]);
    if (strided) strides.push_back(value.strides()[d]);
  }
  if (strided) {
    set_geometry(sizes, strides, value.storage_offset());
  } else {
    set_contiguous(sizes);
  }
  set_layout(value.layout());
  set_dtype(value.scalar_type());
}

void WrapperImpl::copy_metadata_from(const TensorImpl& from) {
  const auto* other = dynamic_cast<const WrapperImpl*>(&from);
  TORCH_CHECK_NOT_IMPLEMENTED(
      other != nullptr && other->level == level,
      "the data of a tensor inside a function transform cannot be replaced by a tensor from "
      "outside of it");
  value = other->value;
  tangent = other->tangent;
  bdim = other->bdim;
  refresh();
}

c10::intrusive_ptr<TensorImpl> WrapperImpl::shallow_copy() const {
  auto out = c10::make_intrusive<WrapperImpl>(value, level, bdim, tangent);
  out->functional = functional;
  return out;
}

void WrapperImpl::release_resources() {
  value.reset();
  tangent.reset();
  TensorImpl::release_resources();
}

WrapperImpl* wrapper_of(const Tensor& t) {
  if (!t.defined() || !t.key_set().has_any(kFrontKeys)) return nullptr;
  return dynamic_cast<WrapperImpl*>(t.unsafeGetTensorImpl());
}
WrapperImpl* wrapper_at(const Tensor& t, const Level& level) {
  WrapperImpl* w = wrapper_of(t);
  return w != nullptr && w->level.get() == &level ? w : nullptr;
}

bool is_transformed(const Tensor& t) { return wrapper_of(t) != nullptr; }

bool varies_by_sample(const Tensor& t) {
  for (const WrapperImpl* w = wrapper_of(t); w != nullptr; w = wrapper_of(w->value))
    if (w->level->kind == LevelKind::Vmap) return true;
  return false;
}

bool is_differentiated_twice(const Tensor& t) {
  int count = 0;
  Tensor inner = t;
  for (const WrapperImpl* w = wrapper_of(inner); w != nullptr; w = wrapper_of(inner)) {
    if (w->level->kind != LevelKind::Vmap) count += w->level->kind == LevelKind::Jvp ? 2 : 1;
    Tensor next = w->value;
    inner = std::move(next);
  }
  return count > 0 && count + inner.requires_grad() > 1;
}

Tensor wrap_batched(const Tensor& value, int64_t bdim, const LevelPtr& level) {
  return make_tensor<WrapperImpl>(value, level, bdim);
}
Tensor wrap_grad(const Tensor& value, const LevelPtr& level) {
  return make_tensor<WrapperImpl>(value, level, -1);
}
Tensor wrap_jvp(const Tensor& value, const Tensor& tangent, const LevelPtr& level) {
  return make_tensor<WrapperImpl>(value, level, -1, tangent);
}

Tensor move_dim(const Tensor& t, int64_t from, int64_t to) {
  if (from == to) return t;
  c10::DimVector order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != from) order.push_back(d);
  order.push_back(0);
  for (int64_t d = t.dim() - 1; d > to; --d) order[d] = order[d - 1];
  order[to] = from;
  return t.permute(order);
}

} // namespace at::functorch
