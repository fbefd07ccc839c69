// The state of autocast, the cache of cast weights and the boxed kernels that do the casting.
#include <torch/csrc/autocast/Autocast.h>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/ops/to.h>
#include <torch/csrc/autograd/variable.h>

#include <c10/core/DeviceHooks.h>
#include <mutex>
#include <unordered_map>

namespace at::autocast {
namespace {

constexpr int kDevices = 3;

struct CachedCast {
  Tensor source; // keeps the key of the map alive
  Tensor cast;
};

struct State {
  bool enabled[kDevices] = {};
  ScalarType dtype[kDevices] = {ScalarType::BFloat16, ScalarType::Half, ScalarType::Half};
  bool cache_enabled = true;
  int nesting = 0;
  std::unordered_map<const void*, CachedCast> cache;
};
thread_local State state;

int slot(DeviceType device) {
  TORCH_CHECK_VALUE(is_available(device), "User specified an unsupported autocast device_type '",
                    c10::device_type_name(device), "': autocast knows cpu and cuda");
  if (device == DeviceType::PrivateUse1) return 2;
  return device == DeviceType::CUDA ? 1 : 0;
}

// float64 stays: a program that uses it asked for it.
bool eligible(const Tensor& t, DeviceType device) {
  return t.defined() && t.device().type() == device && t.is_floating_point() &&
         t.scalar_type() != ScalarType::Double;
}

template <class F> void for_each_tensor(IValue& value, F&& f) {
  if (value.isTensor()) {
    Tensor t = value.toTensor();
    if (f(t)) value = IValue(std::move(t));
  } else if (value.isTensorList()) {
    std::vector<Tensor> list = value.toTensorList();
    bool changed = false;
    for (Tensor& t : list) changed |= f(t);
    if (changed) value = IValue(std::move(list));
  }
}

class CastingKernel final : public BoxedKernel {
 public:
  CastingKernel(Policy policy, DeviceType device) : policy_(policy), device_(device) {}

  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    c10::ExcludeDispatchKeyGuard inner(c10::kAutocastKeys);
    if (policy_ == Policy::Banned && any_low(stack)) {
      TORCH_CHECK(false, op.full_name().substr(6),
                  " and torch.nn.BCELoss are unsafe to autocast: their results overflow in low "
                  "precision. Use binary_cross_entropy_with_logits or BCEWithLogitsLoss, which "
                  "take the values before the sigmoid and are safe.");
    }
    const ScalarType wanted = wanted_dtype(op, stack);
    if (wanted != ScalarType::Undefined) {
      for (IValue& value : stack) {
        for_each_tensor(value, [&](Tensor& t) {
          Tensor cast = cast_argument(t, device_, wanted);
          if (cast.is_same(t)) return false;
          t = std::move(cast);
          return true;
        });
      }
    }
    op.redispatch_boxed(keys.remove(c10::autocast_key(device_)), stack);
  }

 private:
  bool any_low(Stack& stack) const {
    bool low = false;
    for (IValue& value : stack) {
      for_each_tensor(value, [&](const Tensor& t) {
        low |= eligible(t, device_) && t.scalar_type() != ScalarType::Float;
        return false;
      });
    }
    return low;
  }
  ScalarType wanted_dtype(const OperatorEntry& op, Stack& stack) const {
    switch (policy_) {
    case Policy::Lower:
      return dtype(device_);
    case Policy::Float32:
      return names_dtype(op, stack) ? ScalarType::Undefined : ScalarType::Float;
    case Policy::Widest:
      return widest(stack);
    case Policy::Banned:
      return ScalarType::Undefined;
    }
    return ScalarType::Undefined;
  }
  static bool names_dtype(const OperatorEntry& op, const Stack& stack) {
    const auto& arguments = op.schema().arguments;
    for (size_t i = 0; i < arguments.size() && i < stack.size(); ++i) {
      if (arguments[i].name == "dtype") return !stack[i].isNone();
    }
    return false;
  }
  ScalarType widest(Stack& stack) const {
    ScalarType out = dtype(device_);
    for (IValue& value : stack) {
      for_each_tensor(value, [&](const Tensor& t) {
        if (eligible(t, device_) && t.scalar_type() == ScalarType::Float) out = ScalarType::Float;
        return false;
      });
    }
    return out;
  }

  Policy policy_;
  DeviceType device_;
};

void register_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dispatcher& dispatcher = Dispatcher::singleton();
    for (DeviceType device : {DeviceType::CPU, DeviceType::CUDA}) {
      const DispatchKey key = c10::autocast_key(device);
      for (const OpPolicy& entry : op_policies(device)) {
        auto kernel = c10::make_intrusive<CastingKernel>(entry.policy, device);
        for (const OperatorEntry* op : dispatcher.overloads(std::string("aten::") + entry.name)) {
          // An out= argument fixes the result's dtype itself.
          if (op->flags & kOpMutates) continue;
          dispatcher.register_kernel(op, key, RuntimeKernel{nullptr, kernel, "autocast"});
        }
      }
    }
  });
}

} // namespace

// Which operators cast on a device of another package, its own kernels of AutocastPrivateUse1 say.
bool is_available(DeviceType device) {
  return device == DeviceType::CPU || device == DeviceType::CUDA ||
         (device == DeviceType::PrivateUse1 && c10::device_hooks(device) != nullptr);
}
bool is_enabled(DeviceType device) { return state.enabled[slot(device)]; }

void set_enabled(DeviceType device, bool enabled) {
  const int index = slot(device);
  if (enabled) register_kernels();
  state.enabled[index] = enabled;
  const uint64_t bit = DispatchKeySet(c10::autocast_key(device)).raw();
  uint64_t& included = c10::tls_dispatch_keys.included;
  included = enabled ? included | bit : included & ~bit;
}
ScalarType dtype(DeviceType device) { return state.dtype[slot(device)]; }
void set_dtype(DeviceType device, ScalarType dtype) { state.dtype[slot(device)] = dtype; }

bool is_cache_enabled() { return state.cache_enabled; }
void set_cache_enabled(bool enabled) { state.cache_enabled = enabled; }
void clear_cache() { state.cache.clear(); }
int nesting() { return state.nesting; }
int increment_nesting() { return ++state.nesting; }
int decrement_nesting() { return --state.nesting; }

Tensor cast_argument(const Tensor& tensor, DeviceType device, ScalarType wanted) {
  if (!eligible(tensor, device) || tensor.scalar_type() == wanted) return tensor;
  // Only weights are worth keeping: what a forward pass computes is used once.
  const bool keep = state.cache_enabled && wanted == dtype(device) && tensor.requires_grad() &&
                    torch::autograd::is_leaf(tensor) && !tensor.is_view() &&
                    tensor.scalar_type() == ScalarType::Float;
  if (!keep) return _ops::to_dtype::call(tensor, wanted, false, false, std::nullopt);
  auto found = state.cache.find(tensor.unsafeGetTensorImpl());
  if (found != state.cache.end()) return found->second.cast;
  Tensor cast = _ops::to_dtype::call(tensor, wanted, false, false, std::nullopt);
  state.cache.emplace(tensor.unsafeGetTensorImpl(), CachedCast{tensor, cast});
  return cast;
}

} // namespace at::autocast
