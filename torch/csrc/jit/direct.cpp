// See direct.h. A signature is recognised by the address of its boxing adapters, of which there is
// one for each signature in the library.
#include <torch/csrc/jit/direct.h>

#include <ATen/core/Boxing.h>

namespace torch::jit {
namespace {

using at::IValue;
using at::OperatorEntry;
using at::Tensor;
using at::boxing::Arg;
using c10::Scalar;
using c10::SymInt;

template <class Fn> struct Caller;
template <class Ret, class... Args> struct Caller<Ret(Args...)> {
  static_assert(sizeof...(Args) <= kMostDirectArguments, "more arguments than a call gathers");

  static IValue call(const OperatorEntry& op, const IValue* const* arguments) {
    return call(op, arguments, std::index_sequence_for<Args...>());
  }
  template <size_t... I> static IValue call(const OperatorEntry& op, const IValue* const* arguments,
                                            std::index_sequence<I...>) {
    std::tuple<Arg<Args>...> held{Arg<Args>(*arguments[I])...};
    return IValue(at::dispatch_call<Ret, Args...>(op, std::get<I>(held).get()...));
  }
};

struct Known {
  const at::BoxingOps* signature;
  DirectCall call;
};
template <class Fn> Known known() { return {at::boxing_ops<Fn>(), &Caller<Fn>::call}; }

using In = const Tensor&;
using Dtype = std::optional<at::ScalarType>;
using OptionalTensor = const std::optional<Tensor>&;
using OptionalScalar = const std::optional<Scalar>&;
using OptionalInt = std::optional<SymInt>;
using Tensors = std::vector<Tensor>;

const Known kKnown[] = {
    known<Tensor(In)>(),
    known<Tensor(In, In)>(),
    known<Tensor(In, In, In)>(),
    known<Tensor(In, const Scalar&)>(),
    known<Tensor(In, In, const Scalar&)>(),
    known<Tensor(In, const Scalar&, const Scalar&)>(),
    known<Tensor(In, In, In, const Scalar&, const Scalar&)>(),
    known<Tensor(In, In, OptionalTensor)>(),
    known<Tensor(In, OptionalScalar, OptionalScalar)>(),
    known<Tensor(In, bool)>(),
    known<Tensor(In, double, bool)>(),
    known<Tensor(In, std::string_view)>(),
    known<Tensor(In, at::MemoryFormat)>(),
    known<Tensor(In, std::optional<at::MemoryFormat>)>(),
    known<Tensor(In, Dtype)>(),
    // sizes and dimensions
    known<Tensor(In, int64_t)>(),
    known<Tensor(In, int64_t, int64_t)>(),
    known<Tensor(In, int64_t, SymInt)>(),
    known<Tensor(In, int64_t, OptionalInt, OptionalInt, SymInt)>(),
    known<Tensor(In, int64_t, bool)>(),
    known<Tensor(In, int64_t, Dtype)>(),
    known<Tensor(In, std::optional<int64_t>, bool)>(),
    known<Tensor(In, at::IntArrayRef)>(),
    known<Tensor(In, c10::SymIntArrayRef)>(),
    known<Tensor(In, c10::SymIntArrayRef, bool)>(),
    known<Tensor(In, at::IntArrayRef, bool)>(),
    known<Tensor(In, at::OptionalIntArrayRef, bool, Dtype)>(),
    // indices and lists
    known<Tensor(In, int64_t, In)>(),
    known<Tensor(In, int64_t, In, bool)>(),
    known<Tensor(at::TensorList, int64_t)>(),
    known<Tensors(In, int64_t)>(),
    known<Tensors(In, int64_t, int64_t)>(),
    known<Tensors(In, SymInt, int64_t)>(),
    known<int64_t(In, int64_t)>(),
    // in place
    known<Tensor&(Tensor&)>(),
    known<Tensor&(Tensor&, In)>(),
    known<Tensor&(Tensor&, const Scalar&)>(),
    known<Tensor&(Tensor&, In, const Scalar&)>(),
    known<Tensor&(Tensor&, In, bool)>(),
};

} // namespace

DirectCall direct_call_of(const OperatorEntry& op) {
  for (const Known& k : kKnown)
    if (k.signature == op.boxing) return k.call;
  return nullptr;
}

} // namespace torch::jit
