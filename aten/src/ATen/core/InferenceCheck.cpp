// See InferenceCheck.h. Only operators that write take part: the others do not look for the key, so
// that inference tensors cost nothing elsewhere.
#include <ATen/core/InferenceCheck.h>

#include <algorithm>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <c10/core/InferenceMode.h>

namespace at {
namespace {

void refuse(const Tensor& t) {
  TORCH_CHECK(!t.defined() || !t.is_inference(),
              "Inplace update to inference tensor outside InferenceMode is not allowed.You can "
              "make a clone to get a normal tensor before doing inplace update.");
}

// Whether autograd will refuse the call: its reason comes first.
bool is_refused_by_autograd(const FunctionSchema& schema, const Stack& stack, size_t from) {
  const auto& arguments = schema.arguments;
  const bool is_out = std::any_of(arguments.begin(), arguments.end(),
                                  [](const auto& argument) { return argument.is_out; });
  if (!is_out || !c10::tls_autograd_state.grad_mode) return false;
  return std::any_of(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end(),
                     [](const IValue& v) { return v.isTensor() && v.toTensor().requires_grad(); });
}

class RefuseWrites final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const FunctionSchema& schema = op.schema();
    const size_t from = stack.size() - schema.arguments.size();
    const bool is_refused = is_refused_by_autograd(schema, stack, from);
    for (size_t i = from; i < stack.size() && !is_refused; ++i) {
      const auto& alias = schema.arguments[i - from].alias;
      if (!alias || !alias->is_write) continue;
      if (stack[i].isTensor()) refuse(stack[i].toTensor());
      if (!stack[i].isTensorList()) continue;
      for (const Tensor& t : stack[i].toTensorList()) refuse(t);
    }
    op.redispatch_boxed(keys.remove(kInferenceKey), stack);
  }
};
} // namespace

void enable_inference_check() {
  static const bool done = [] {
    Dispatcher& dispatcher = Dispatcher::singleton();
    dispatcher.register_fallback(kInferenceKey, c10::make_intrusive<RefuseWrites>());
    const uint64_t bit = DispatchKeySet(kInferenceKey).raw();
    for (const OperatorEntry* op : dispatcher.all())
      if ((op->flags & kOpMutates) == 0) op->mask.fetch_and(~bit);
    return true;
  }();
  (void)done;
}

namespace {
// The guard of C++ programs is in c10, which knows of no operators.
const bool installed = [] {
  c10::set_inference_mode_hook(&enable_inference_check);
  return true;
}();
} // namespace

} // namespace at
