// Runs a reduction kernel over some dimensions of a tensor: geometry, blocking, threads, and the
// way of the values into the outputs. CUDA tensors go to reduce_cuda, which has the same contract.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/reduce/ReduceKernel.h>

namespace at::native::reduce {

// Bit d set: dimension d is reduced. Tensors have at most 64 dimensions.
using DimMask = uint64_t;

// What happens to the first value, in the kernel's value dtype, before it is converted to the
// output's dtype: nothing, division by the number of elements, a square root, the param-th root.
enum class Post : uint8_t { None, Mean, Sqrt, Root };

struct ReduceCall {
  const ReduceKernel* kernel;
  double param = 0; // given to the kernel's leaf and finish
  Post post = Post::None;
};

// outs: one contiguous tensor per value of the kernel, holding the results in the order of the kept
// dimensions; an undefined tensor is a value not wanted. Values are converted to the output's
// dtype. For arg-reductions `mask` must name one dimension, or all of a contiguous tensor.
void run_reduce(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs);
// The same of elements that are in no memory: `self` is a dense tensor on the meta device, and
// compute(to, begin, end) writes the elements [begin, end) of its memory order to `to`. Cuts and
// bits are those of a tensor on the CPU with that geometry. For sums, maxima and minima.
using ElementSource = FunctionRef<void(char* to, int64_t begin, int64_t end)>;
void run_reduce_of(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs,
                   ElementSource compute);
// Some contiguous rows on this thread, each to one element of `out`: the bits that run_reduce gives
// for a contiguous tensor of any number of such rows, for lengths that can_reduce_rows.
bool can_reduce_rows(const ReduceKernel& kernel, c10::SymInt length);
void reduce_rows(const ReduceCall& call, const char* in, int64_t rows, int64_t length, char* out,
                 ScalarType out_dtype);
void reduce_cuda(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs);

} // namespace at::native::reduce
