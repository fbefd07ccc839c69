// Kernels registered for operators that nobody has defined yet: libraries are loaded in any order.
// They wait here, and their operator takes them over when it is defined.
#pragma once
#include <string>

#include <ATen/core/Dispatcher.h>

namespace at::detail {

// `name` and `overload` as Dispatcher::find takes them.
TORCH_API void keep_pending_kernel(std::string name, std::string overload, DispatchKey key,
                                   RuntimeKernel kernel);
// Registers what waits for `op`, which was defined just now.
void adopt_pending_kernels(const OperatorEntry& op);
// "ns::name.overload" of every kernel that waits, in the order of registration.
TORCH_API std::vector<std::string> pending_kernels();

} // namespace at::detail
