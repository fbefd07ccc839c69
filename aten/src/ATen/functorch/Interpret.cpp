// The kernels for wrapper keys: the choice of the level that interprets a call, and the grad level.
// See Note [Levels by wrapper].
#include <ATen/functorch/Interpret.h>

#include <cstring>

namespace at::functorch {

JvpKernel jvp_kernel = nullptr;

bool is_random(const OperatorEntry& op) {
  return std::strstr(op.tags_text, "nondeterministic_seeded") != nullptr;
}

bool is_composite(const OperatorEntry& op) {
  if ((op.flags & kOpComposite) != 0) return true;
  return op.has_kernel(DispatchKey::CompositeImplicitAutograd) &&
         !op.has_kernel(DispatchKey::Autograd);
}

// A backend without kernels of its own finds the composite one.
void run_composite(const OperatorEntry& op, Stack& stack) {
  op.redispatch_boxed(DispatchKeySet(DispatchKey::PrivateUse1), stack);
}

uint64_t& random_limit() {
  static thread_local uint64_t limit = UINT64_MAX;
  return limit;
}

namespace {

[[noreturn]] void throw_escaped(const OperatorEntry& op) {
  throw c10::Error(c10::str(
      "Either your tensor may have escaped from inside a function being vmapped and this is a user "
      "error: '",
      op.full_name(),
      "' was called on a tensor of a vmap that has ended. A function under vmap must hand its "
      "results over by returning them."));
}

// The tensor without levels that have ended. A gradient's tensor is then its value; a batched one
// has no meaning any more.
Tensor settle(const OperatorEntry& op, Tensor t) {
  for (WrapperImpl* w = wrapper_of(t); w != nullptr && !w->level->alive; w = wrapper_of(t)) {
    if (w->level->kind == LevelKind::Vmap) throw_escaped(op);
    Tensor inner = w->value;
    t = std::move(inner);
  }
  return t;
}

// Settles the arguments and returns the newest level among them, or null.
// `settled` tells whether one was changed.
LevelPtr newest_level(const OperatorEntry& op, Stack& stack, size_t from, bool* settled) {
  LevelPtr newest;
  for (size_t i = from; i < stack.size(); ++i) {
    bool dead = false;
    each_tensor(stack[i], [&](const Tensor& t) {
      const WrapperImpl* w = wrapper_of(t);
      if (w == nullptr) return;
      if (!w->level->alive) {
        dead = true;
      } else if (!newest || w->level->id > newest->id) {
        newest = w->level;
      }
    });
    if (!dead) continue;
    *settled = true;
    map_tensors(stack[i], [&](const Tensor& t) { return settle(op, t); });
    each_tensor(stack[i], [&](const Tensor& t) {
      const WrapperImpl* w = wrapper_of(t);
      if (w != nullptr && (!newest || w->level->id > newest->id)) newest = w->level;
    });
  }
  return newest;
}

// The innermost vmap level that is newer than `newest`, or it, and has not yet had its turn.
LevelPtr random_level(const LevelPtr& newest) {
  const auto& levels = level_stack();
  for (size_t i = levels.size(); i-- > 0;) {
    if (levels[i]->id >= random_limit()) continue;
    if (newest && levels[i]->id < newest->id) return nullptr;
    if (levels[i]->kind == LevelKind::Vmap) return levels[i];
    if (newest && levels[i] == newest) return nullptr;
  }
  return nullptr;
}

// `newest`, or a functionalize level that is newer.
LevelPtr newest_functionalize(const LevelPtr& newest) {
  for (const LevelPtr& level : level_stack())
    if (level->kind == LevelKind::Functionalize && (!newest || level->id > newest->id))
      return level;
  return newest;
}

// ---- the grad level -----------------------------------------------------------------------------
// Between the front, where wrappers of a level enter the Autograd kernels, and the back, where they
// are taken off again.
struct Frame {
  LevelPtr level;
  c10::LocalDispatchKeySet keys; // as they were before the front
  Frame* outer;
};
thread_local Frame* current_frame = nullptr;

struct FrameScope {
  explicit FrameScope(Frame* frame) : before(current_frame) { current_frame = frame; }
  ~FrameScope() { current_frame = before; }
  Frame* before;
};
struct KeysScope {
  explicit KeysScope(c10::LocalDispatchKeySet keys) : before(c10::tls_dispatch_keys) {
    c10::tls_dispatch_keys = keys;
  }
  ~KeysScope() { c10::tls_dispatch_keys = before; }
  c10::LocalDispatchKeySet before;
};
struct GradModeScope {
  explicit GradModeScope(bool allowed) : before(c10::tls_autograd_state.grad_mode) {
    if (!allowed) c10::tls_autograd_state.grad_mode = false;
  }
  ~GradModeScope() { c10::tls_autograd_state.grad_mode = before; }
  bool before;
};

void run_grad(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level) {
  const FunctionSchema& schema = op.schema();
  for (size_t i = from; i < stack.size(); ++i) {
    map_tensors(stack[i], [&](const Tensor& t) {
      if (wrapper_at(t, *level) != nullptr) return t;
      TORCH_CHECK(
          !writes(schema, i - from),
          "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted "
          "to call in-place operation (",
          op.full_name(),
          ") that would mutate a captured Tensor. This is not supported; please rewrite the "
          "function being transformed to explicitly accept the mutated Tensor(s) as "
          "inputs.");
      return wrap_grad(t, level);
    });
  }
  Frame frame{level, c10::tls_dispatch_keys, current_frame};
  FrameScope scope(&frame);
  c10::ExcludeDispatchKeyGuard guard(kFrontKeys.add(kFunctionalizeMode).add(kFreshKey));
  op.call_boxed(stack);
}

// A result is a view of the argument whose alias set it shares.
void mark_view(const FunctionSchema& schema, const SchemaArgument& result, const Stack& arguments,
               const Tensor& out, const Level& level, bool many) {
  if (!result.alias || result.alias->is_write || schema.name == "aten::detach") return;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const SchemaArgument& a = schema.arguments[i];
    if (!a.alias || !arguments[i].isTensor()) continue;
    const Tensor base = arguments[i].toTensor();
    const WrapperImpl* w = wrapper_at(base, level);
    if (w == nullptr) continue;
    TensorImpl* impl = out.unsafeGetTensorImpl();
    impl->set_view_of(w->is_view() ? w->base() : base.getIntrusivePtr());
    if (!c10::tls_autograd_state.grad_mode) impl->view_origin = TensorImpl::ViewOrigin::NoGrad;
    if (many) impl->view_origin = TensorImpl::ViewOrigin::MultiOutput;
    if (w->is_view() && w->view_origin != TensorImpl::ViewOrigin::Default)
      impl->view_origin = w->view_origin;
    return;
  }
}

// Puts the results back into wrappers; arguments that were written are themselves.
void rewrap(const OperatorEntry& op, const Stack& arguments, Stack& stack, size_t from,
            const LevelPtr& level) {
  const FunctionSchema& schema = op.schema();
  std::vector<std::pair<Tensor, Tensor>> written; // value, wrapper
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!writes(schema, i)) continue;
    each_tensor(arguments[i], [&](const Tensor& t) {
      WrapperImpl* w = wrapper_at(t, *level);
      if (w == nullptr) return;
      w->refresh();
      w->bump_version();
      written.emplace_back(w->value, t);
    });
  }
  for (size_t k = from; k < stack.size(); ++k) {
    const bool many = stack[k].isTensorList();
    map_tensors(stack[k], [&](const Tensor& t) {
      for (const auto& [value, wrapper] : written)
        if (value.is_same(t)) return wrapper;
      Tensor out = wrap_grad(t, level);
      if (k - from < schema.returns.size())
        mark_view(schema, schema.returns[k - from], arguments, out, *level, many);
      return out;
    });
  }
}

class Back final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const size_t from = stack.size() - op.schema().arguments.size();
    const Stack arguments(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end());
    Frame* frame = current_frame;
    bool settled = false;
    const LevelPtr level = frame ? frame->level : newest_level(op, stack, from, &settled);
    if (!level) {
      op.redispatch_boxed(keys.remove(kBackKey), stack);
      return;
    }
    for (size_t i = from; i < stack.size(); ++i) {
      map_tensors(stack[i], [&](const Tensor& t) {
        const WrapperImpl* w = wrapper_at(t, *level);
        return w != nullptr ? w->value : t;
      });
    }
    {
      c10::LocalDispatchKeySet outside = frame ? frame->keys : c10::tls_dispatch_keys;
      if (!frame) outside.excluded &= ~(kFrontKeys | c10::kAutogradKeys).raw();
      KeysScope restored(outside);
      FrameScope below(frame ? frame->outer : nullptr);
      const BelowLevel values(*level);
      GradModeScope mode(level->grad_mode_outside);
      op.call_boxed(stack);
    }
    rewrap(op, arguments, stack, from, level);
  }
};

// ---- the front ----------------------------------------------------------------------------------
class Front final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const size_t from = stack.size() - op.schema().arguments.size();
    bool settled = false;
    LevelPtr newest = newest_level(op, stack, from, &settled);
    if (keys.has(kFunctionalizeMode)) newest = newest_functionalize(newest);
    if (is_random(op) && !is_composite(op)) {
      if (const LevelPtr vmap = random_level(newest)) {
        run_random(op, stack, from, vmap);
        return;
      }
    }
    if (!newest) {
      // Nothing of a living level is left: an ordinary call.
      if (settled) {
        op.call_boxed(stack);
      } else {
        op.redispatch_boxed((keys - kFrontKeys).remove(kFunctionalizeMode), stack);
      }
      return;
    }
    if (is_composite(op) && (newest->kind != LevelKind::Vmap || !has_named_rule(op))) {
      run_composite(op, stack);
      return;
    }
    if (newest->kind == LevelKind::Grad) {
      run_grad(op, stack, from, newest);
      return;
    }
    const BelowLevel values(*newest);
    switch (newest->kind) {
    case LevelKind::Vmap:
      if (op.has_kernel(DispatchKey::FuncTorchBatched)) {
        // A rule registered from outside (torch.library.register_vmap).
        op.redispatch_boxed(DispatchKeySet(DispatchKey::FuncTorchBatched), stack);
        return;
      }
      run_batched(op, stack, from, newest);
      return;
    case LevelKind::Jvp:
      TORCH_INTERNAL_ASSERT(jvp_kernel != nullptr, op.full_name());
      jvp_kernel(op, stack, from, newest);
      return;
    default:
      run_functional(op, stack, from, newest);
      return;
    }
  }
};

// ---- tensors that are made inside of a level ----------------------------------------------------
// Whether what the operator returns is new. lift_fresh gives a tensor that nobody has seen yet.
bool makes_tensors(const OperatorEntry& op) {
  if ((op.flags & kOpMutates) != 0 || is_composite(op)) return false;
  return (op.flags & kOpView) == 0 || std::strcmp(op.name, "aten::lift_fresh") == 0;
}

class Fresh final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const size_t from = stack.size() - op.schema().arguments.size();
    const LevelPtr level = makes_tensors(op) ? level_of_fresh_tensors() : nullptr;
    bool settled = false;
    const LevelPtr newest = level ? newest_level(op, stack, from, &settled) : nullptr;
    if (!level || (newest && newest->id >= level->id)) {
      op.redispatch_boxed(keys.remove(kFreshKey), stack);
      return;
    }
    {
      const BelowLevel older(*level);
      op.call_boxed(stack);
    }
    for (size_t k = from; k < stack.size(); ++k) {
      map_tensors(stack[k], [&](const Tensor& t) {
        return level->kind == LevelKind::Grad ? wrap_grad(t, level) : wrap_jvp(t, {}, level);
      });
    }
  }
};
} // namespace

void register_kernels(bool functionalize) {
  static const c10::intrusive_ptr<BoxedKernel> front = c10::make_intrusive<Front>();
  static const c10::intrusive_ptr<BoxedKernel> back = c10::make_intrusive<Back>();
  Dispatcher& dispatcher = Dispatcher::singleton();
  if (dispatcher.fallback(DispatchKey::FuncTorchBatched) != front)
    dispatcher.register_fallback(DispatchKey::FuncTorchBatched, front);
  if (dispatcher.fallback(DispatchKey::FuncTorchGradWrapper) != front)
    dispatcher.register_fallback(DispatchKey::FuncTorchGradWrapper, front);
  if (functionalize && dispatcher.fallback(kFunctionalizeMode) != front)
    dispatcher.register_fallback(kFunctionalizeMode, front);
  if (dispatcher.fallback(kBackKey) != back) dispatcher.register_fallback(kBackKey, back);
  static const c10::intrusive_ptr<BoxedKernel> fresh = c10::make_intrusive<Fresh>();
  if (dispatcher.fallback(kFreshKey) != fresh) dispatcher.register_fallback(kFreshKey, fresh);
  // Only random operators take part in the mode: the others need not look for it.
  static const bool random_registered = [&] {
    for (const OperatorEntry* op : detail::builtin_operators()) {
      if (!is_random(*op) || is_composite(*op)) continue;
      RuntimeKernel kernel;
      kernel.boxed = front;
      kernel.debug = "vmap randomness";
      dispatcher.register_kernel(op, DispatchKey::FuncTorchVmapMode, std::move(kernel));
    }
    return true;
  }();
  (void)random_registered;
}

} // namespace at::functorch
