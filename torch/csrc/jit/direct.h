// Operators called by their C++ signature: arguments come straight from registers, the result goes
// straight to one. Only common signatures are known; others are called with a stack.
#pragma once
#include <ATen/core/Dispatcher.h>
#include <ATen/core/IValue.h>

namespace torch::jit {

constexpr size_t kMostDirectArguments = 6;

// The arguments are those of the schema, in order; those that must be tensors are.
using DirectCall = at::IValue (*)(const at::OperatorEntry& op, const at::IValue* const* arguments);

// Null where the operator's signature is not among the known ones.
TORCH_API DirectCall direct_call_of(const at::OperatorEntry& op);

} // namespace torch::jit
