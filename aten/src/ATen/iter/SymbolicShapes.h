// Broadcasting and the layout of pointwise results where sizes are symbolic: the counterparts of
// broadcast_shapes and pointwise_output_strides. A size of 2 or more is never taken for 1 without a
// guard; sizes that must be equal are guarded to be, or checked at run time.
#pragma once
#include <ATen/core/Tensor.h>

namespace at {

TORCH_API std::vector<SymInt> symbolic_broadcast(SymIntArrayRef a, SymIntArrayRef b);
TORCH_API std::vector<SymInt> symbolic_broadcast(ArrayRef<const Tensor*> operands);

// Dense strides in the order of dimensions that the operands have in the traced run; that they are
// in this order is guarded.
TORCH_API std::vector<SymInt> symbolic_output_strides(SymIntArrayRef shape,
                                                      ArrayRef<const Tensor*> operands);

} // namespace at
