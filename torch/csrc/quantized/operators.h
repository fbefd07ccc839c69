// The operators of torch.ops.quantized whose weights are packed, and the classes that hold them.
// See operators.cpp.
#pragma once
#include <c10/macros/Macros.h>

namespace torch::quantized {

// Defines the classes and operators. The first call does it, later ones do nothing: programs that
// use no quantized layer do not pay for their registration.
TORCH_API void register_operators();

} // namespace torch::quantized
