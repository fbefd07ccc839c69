// The autograd kernel of an operator that was defined at run time with kernels for devices and none
// for autograd. torch/csrc/autograd/unregistered.cpp defines it; the dispatcher resolves to it.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace torch::autograd {

// What happens when gradients meet such an operator. Nothing: they end there, silently. Warn: the
// results take part in the graph, and a backward pass that reaches them warns.
enum class UnregisteredMode : uint8_t { Nothing, Warn };

// For the whole process; Warn by default. Any thread may call these.
TORCH_API UnregisteredMode unregistered_mode();
TORCH_API void set_unregistered_mode(UnregisteredMode mode);

TORCH_API c10::intrusive_ptr<at::BoxedKernel> unregistered_autograd_kernel();

} // namespace torch::autograd
