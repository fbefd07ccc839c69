// A boxed call by someone who already knows the operator's schema, which costs a lock to ask for.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace at {

// Calls the operator with the last `arguments` values of the stack; keys come from its tensors. The
// results take their place.
TORCH_API void call_boxed(const OperatorEntry& op, size_t arguments, Stack& stack);

} // namespace at
