// The functor of an operator's loops on the CPU, for text that is compiled to the same results.
#pragma once
#include <ATen/iter/Pointwise.h>

namespace at::native {

// Its name in namespace fn, in the header of the operator's CUDA program: mostly the same one.
// The operator must have such a program.
TORCH_API const char* host_functor(const iter::PointwiseSpec& spec);

} // namespace at::native
