// See result_check.h. The expectation comes from the operator itself, called on the meta device.
#include <torch/csrc/python/dispatch/result_check.h>

#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/ops/empty_strided.h>

namespace torch::python {
namespace {

using at::IValue;
using at::Tensor;
using Kind = at::SchemaType::Kind;

// A check inside of a check: operators that the kernel calls may be overridden as well.
thread_local bool checking = false;
struct Checking {
  Checking() { checking = true; }
  ~Checking() { checking = false; }
};

Tensor on_meta(const Tensor& t) {
  if (!t.defined() || t.layout() != at::kStrided) return t;
  return at::empty_strided(t.sizes(), t.strides(), t.scalar_type(), at::kStrided,
                           c10::Device(at::kMeta), std::nullopt);
}

// False for arguments that have no counterpart on the meta device.
bool move_to_meta(const at::FunctionSchema& schema, at::Stack& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    IValue& value = arguments[i];
    if (value.isTensor()) {
      const Tensor& t = value.toTensor();
      if (t.defined() &&
          (t.layout() != at::kStrided || t.unsafeGetTensorImpl()->has_symbolic_sizes()))
        return false;
      value = IValue(on_meta(t));
    } else if (value.isTensorList()) {
      std::vector<Tensor> moved;
      for (const Tensor& t : value.toTensorList()) moved.push_back(on_meta(t));
      value = IValue(std::move(moved));
    } else if (value.isOptionalTensorList()) {
      return false;
    } else if (schema.arguments[i].type.kind == Kind::Device) {
      value = IValue(c10::Device(at::kMeta));
    }
  }
  return true;
}

// The kernel for the meta device that the library itself has.
void* own_kernel(const at::OperatorEntry& op) {
  using K = c10::DispatchKey;
  for (const K wanted : {K::Meta, K::CompositeExplicitAutograd, K::CompositeImplicitAutograd})
    for (const at::KernelInit* k = op.kernels; k->key != K::Undefined; ++k)
      if (k->key == wanted) return k->fn;
  return nullptr;
}

// The results on the meta device; empty where the operator cannot say.
at::Stack expected_results(const at::OperatorEntry& op, at::Stack arguments) {
  void* const kernel = own_kernel(op);
  if (kernel == nullptr || !move_to_meta(op.schema(), arguments)) return {};
  const Checking scope;
  const c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys.add(c10::DispatchKey::Python));
  try {
    op.boxing->boxed_from_unboxed(kernel, {&op, c10::DispatchKeySet(c10::DispatchKey::Meta)},
                                  arguments);
    return arguments;
  } catch (const c10::Error&) {
    return {};
  }
}

void check_one(const at::OperatorEntry& op, const Tensor& made, const Tensor& wanted) {
  const std::string who = c10::str("the kernel of ", op.full_name(), " registered from Python ");
  TORCH_CHECK(made.sizes() == wanted.sizes() && made.scalar_type() == wanted.scalar_type(), who,
              "returned a tensor of shape ", made.sizes(), " and dtype ", made.scalar_type(),
              ", expected ", wanted.sizes(), " and ", wanted.scalar_type());
  const bool same_steps =
      !(op.flags & at::kOpFactory) || made.numel() == 0 || made.strides() == wanted.strides();
  TORCH_CHECK(same_steps, who, "returned a tensor with strides ", made.strides(), ", expected ",
              wanted.strides());
  TORCH_CHECK(made.numel() == 0 || made.layout() != at::kStrided || made.data_ptr() != nullptr, who,
              "returned a tensor on ", made.device(), " without memory");
}

} // namespace

void check_results(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack arguments,
                   const at::Stack& results) {
  // Operators from other libraries have no callers in C++ that know what they return, on the meta
  // device there is no memory, and a mode above autograd calls the operator itself.
  if (checking || op.kernels == nullptr || op.boxing == nullptr || (op.flags & at::kOpMutates) ||
      keys.highest() == c10::DispatchKey::Meta || keys.highest() == c10::DispatchKey::PreDispatch)
    return;
  const at::Stack wanted = expected_results(op, std::move(arguments));
  for (size_t i = 0; i < wanted.size() && i < results.size(); ++i) {
    if (!wanted[i].isTensor() || !results[i].isTensor()) continue;
    const Tensor made = results[i].toTensor(), expected = wanted[i].toTensor();
    if (made.defined() && expected.defined()) check_one(op, made, expected);
  }
}

} // namespace torch::python
