// Kernels that an operator of an extension registers for autograd when nobody wrote its derivative.
#pragma once
#include <ATen/core/Library.h>
#include <ATen/core/UnregisteredAutograd.h>

namespace torch::autograd {

// For the key Autograd: results take part in the graph, and a backward pass that reaches them
// raises. Tensors that the operator writes are checked as those of a built-in operator.
TORCH_API torch::CppFunction autogradNotImplementedFallback();
// For the key ADInplaceOrView: results that the schema calls views of the first argument must not
// be written to while gradients are recorded, since their history could not follow the write.
TORCH_API torch::CppFunction autogradNotImplementedInplaceOrViewFallback();
// What operators without any kernel for autograd have: a backward pass warns.
TORCH_API torch::CppFunction basicAutogradNotImplementedFallback();

using AutogradFallbackMode = UnregisteredMode;
inline void setAutogradFallbackMode(AutogradFallbackMode mode) { set_unregistered_mode(mode); }
inline AutogradFallbackMode getAutogradFallbackMode() { return unregistered_mode(); }

} // namespace torch::autograd
