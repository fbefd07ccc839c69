// Pointwise operators whose result has another kind of type than their operands, on CUDA.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native {

enum class Part : uint8_t { Mantissa, Exponent, Complex, Polar };

// Fills `out`, a CUDA tensor of the operands' common shape; the operands have one floating dtype
// (complex numbers are made of no bfloat16).
void part_cuda(Part part, const Tensor& out, ArrayRef<Tensor> operands);

} // namespace at::native
