// Where the dispatcher finds the kernels of quantized tensors that are not in the operator list:
// they are named in a table of ATen/native/quantized, which lies above this folder and defines
// this.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace at::quantized {

// The boxed kernel of an operator for quantized tensors; null where there is none.
TORCH_API c10::intrusive_ptr<BoxedKernel> quantized_fallback(const OperatorEntry& op);

} // namespace at::quantized
