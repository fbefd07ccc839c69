// See InferenceCheck.h. Only operators that write take part: the others do not look for the key, so
// that inference tensors cost nothing elsewhere.
#include <ATen/core/InferenceCheck.h>

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

class RefuseWrites final : public BoxedKernel {
 public:
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const FunctionSchema& schema = op.schema();
    const size_t from = stack.size() - schema.arguments.size();
    for (size_t i = from; i < stack.size(); ++i) {
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
