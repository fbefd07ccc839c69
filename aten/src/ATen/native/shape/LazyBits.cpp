// What operators without an own rule do with conjugate and negative views (see Complex.cpp):
// arguments are materialised, the operator runs, and what it wrote goes back into the view's
// memory. Operators that only make views, and composites, pass: the bit travels with the view or
// meets their parts.
#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/IValue.h>

#include <cstring>

#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/neg.h>

namespace at::native {
namespace {

// One of the two bits: its key, the view that flips it, and the operation it stands for.
struct LazyBit {
  DispatchKey key;
  Tensor (*flip)(const Tensor&);
  Tensor (*apply)(const Tensor&);
  bool set(const Tensor& t) const { return t.defined() && t.key_set().has(key); }
  // Handlers see a copy, which is what has no bits.
  Tensor materialised(const Tensor& t) const {
    return C10_UNLIKELY(handlers_active()) ? at::clone(t) : apply(flip(t));
  }
};
constexpr LazyBit kConjugateBit = {DispatchKey::Conjugate,
                                   [](const Tensor& t) { return at::_conj(t); },
                                   [](const Tensor& t) { return at::conj_physical(t); }};
constexpr LazyBit kNegativeBit = {DispatchKey::Negative,
                                  [](const Tensor& t) { return at::_neg_view(t); },
                                  [](const Tensor& t) { return at::neg(t); }};

class LazyBitFallback final : public BoxedKernel {
 public:
  explicit LazyBitFallback(const LazyBit& bit) : bit_(bit) {}

  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const DispatchKeySet below = keys.remove(bit_.key);
    const bool passes = (op.flags & (kOpView | kOpComposite)) != 0 ||
                        std::strstr(op.tags_text, "inplace_view") != nullptr ||
                        (&op == &_ops::clone::entry && handlers_active());
    if (passes) return op.redispatch_boxed(below, stack);

    const FunctionSchema& schema = op.schema();
    const size_t first = stack.size() - schema.arguments.size();
    std::vector<Written> written;
    {
      c10::ExcludeDispatchKeyGuard no_autograd(c10::kAutogradKeys);
      for (size_t i = 0; i < schema.arguments.size(); ++i)
        resolve(schema.arguments[i], stack[first + i], written);
    }
    op.redispatch_boxed(below, stack);
    c10::ExcludeDispatchKeyGuard no_autograd(c10::kAutogradKeys);
    for (Written& w : written) store(w, stack, first);
  }

 private:
  struct Written {
    Tensor original;
    Tensor stand_in;
  };

  Tensor resolve_one(const Tensor& t, bool is_write, std::vector<Written>& written) const {
    if (!bit_.set(t)) return t;
    Tensor stand_in = bit_.materialised(t);
    if (is_write) written.push_back({t, stand_in});
    return stand_in;
  }

  void resolve(const SchemaArgument& argument, IValue& value, std::vector<Written>& written) const {
    const bool is_write = argument.alias && argument.alias->is_write;
    if (value.isTensor()) {
      value = IValue(resolve_one(value.toTensor(), is_write, written));
    } else if (value.isTensorList()) {
      std::vector<Tensor> list = value.toTensorList();
      for (Tensor& t : list) t = resolve_one(t, is_write, written);
      value = IValue(std::move(list));
    } else if (value.isOptionalTensorList()) {
      std::vector<std::optional<Tensor>> list = value.toOptionalTensorList();
      for (std::optional<Tensor>& t : list)
        if (t) t = resolve_one(*t, is_write, written);
      value = IValue(std::move(list));
    }
  }

  // Writes a stand-in back, and puts the original where the operator returned the stand-in.
  void store(const Written& w, Stack& stack, size_t first_result) const {
    TORCH_CHECK(w.original.sizes() == w.stand_in.sizes(),
                "cannot resize a conjugate or negative view");
    bit_.flip(w.original).copy_(bit_.apply(w.stand_in));
    for (size_t i = first_result; i < stack.size(); ++i) {
      IValue& value = stack[i];
      if (value.isTensor()) {
        if (value.toTensor().is_same(w.stand_in)) value = IValue(w.original);
      } else if (value.isTensorList()) {
        std::vector<Tensor> list = value.toTensorList();
        for (Tensor& t : list)
          if (t.is_same(w.stand_in)) t = w.original;
        value = IValue(std::move(list));
      }
    }
  }

  const LazyBit& bit_;
};

// Runs when the library is loaded: without it the bits would be ignored.
[[maybe_unused]] const bool registered = [] {
  Dispatcher& dispatcher = Dispatcher::singleton();
  dispatcher.register_fallback(DispatchKey::Conjugate,
                               c10::make_intrusive<LazyBitFallback>(kConjugateBit));
  dispatcher.register_fallback(DispatchKey::Negative,
                               c10::make_intrusive<LazyBitFallback>(kNegativeBit));
  return true;
}();

} // namespace
} // namespace at::native
