// Runs a reduction kernel over some dimensions of a tensor: geometry, blocking, threads, and the
// way of the values into the outputs.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/native/reduce/ReduceKernel.h>

namespace at::native::reduce {

// Bit d set: dimension d is reduced. Tensors have at most 64 dimensions.
using DimMask = uint64_t;

struct ReduceCall {
  const ReduceKernel* kernel;
  double param = 0; // given to the kernel's leaf and finish
  // Applied to the first value of n results, in the kernel's value dtype, before the conversion to
  // the output's dtype; null when there is nothing to do. `args.count` is the number of elements.
  void (*post)(char* value, int64_t n, const FinishArgs& args) = nullptr;
};

// outs: one contiguous tensor per value of the kernel, holding the results in the order of the kept
// dimensions; an undefined tensor is a value not wanted. Values are converted to the output's
// dtype. For arg-reductions `mask` must name one dimension, or all of a contiguous tensor.
void run_reduce(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs);

} // namespace at::native::reduce
