// Autograd kernels that need no code per operator: those of out= variants, which refuse gradients,
// and those of operators without a formula, whose backward raises. Instantiated per signature by
// the generated operator files, hence here; torch/csrc/autograd defines the three functions that
// know graphs.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace torch::autograd {

namespace detail {
[[noreturn]] TORCH_API void throw_out_requires_grad(const at::OperatorEntry& op);
[[noreturn]] TORCH_API void throw_missing(const at::OperatorEntry& op);
// Makes the tensors outputs of a node that raises NotImplementedError naming the operator.
TORCH_API void mark_missing(const at::OperatorEntry& op, at::TensorList outputs);

inline void collect(std::vector<at::Tensor>& out, const at::Tensor& t) { out.push_back(t); }
inline void collect(std::vector<at::Tensor>& out, at::TensorList list) {
  for (const at::Tensor& t : list) out.push_back(t);
}
template <class... T> void collect(std::vector<at::Tensor>& out, const std::tuple<T...>& all) {
  std::apply([&](const auto&... each) { (collect(out, each), ...); }, all);
}
template <class T> void collect(std::vector<at::Tensor>&, const T&) {}
} // namespace detail

// Runs the operator below autograd.
template <class Ret, class... Args>
C10_ALWAYS_INLINE Ret run_below(at::KernelContext ctx, Args... args) {
  c10::ExcludeDispatchKeyGuard guard(c10::kAutogradKeys);
  return at::dispatch_redispatch<Ret, Args...>(*ctx.op, ctx.keys - c10::kAutogradKeys,
                                               std::forward<Args>(args)...);
}

template <class... Args> bool any_requires_grad(const Args&... args) {
  return ((uint64_t(0) | ... | at::detail::keys_of(args)) & c10::kAutogradKeys.raw()) != 0;
}

template <class Ret, class... Args> Ret out_kernel(at::KernelContext ctx, Args... args) {
  if (c10::tls_autograd_state.grad_mode && any_requires_grad(args...))
    detail::throw_out_requires_grad(*ctx.op);
  return run_below<Ret, Args...>(ctx, std::forward<Args>(args)...);
}

template <class Ret, class... Args> Ret missing_kernel(at::KernelContext ctx, Args... args) {
  if (!c10::tls_autograd_state.grad_mode || !any_requires_grad(args...))
    return run_below<Ret, Args...>(ctx, std::forward<Args>(args)...);
  if constexpr (std::is_void_v<Ret>) {
    detail::throw_missing(*ctx.op);
  } else {
    Ret result = run_below<Ret, Args...>(ctx, std::forward<Args>(args)...);
    std::vector<at::Tensor> outputs;
    detail::collect(outputs, result);
    detail::mark_missing(*ctx.op, outputs);
    return result;
  }
}

} // namespace torch::autograd
