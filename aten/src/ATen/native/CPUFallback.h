// Running an operator of another device on the CPU: arguments are copied to the host, the CPU's
// kernel runs, what it wrote and what it returned are copied back. A backend registers it for the
// operators it has no kernels for, or for all of them:
//   TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
//     m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
//   }
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

namespace at::native {

// A result that is a view of an argument becomes a tensor of its own, which is no view: with
// `error_on_views` that is an error.
TORCH_API void cpu_fallback(const c10::OperatorHandle& op, Stack* stack,
                            bool error_on_views = false,
                            c10::DispatchKey cpu_dispatch_key = c10::DispatchKey::CPU);

} // namespace at::native
