// The CUDA half of at::iter::pointwise, and conversions and copies on one device, which are
// pointwise operators of their own.
#pragma once

#include <ATen/iter/Pointwise.h>

namespace at::cuda {

// The short way of a call: all tensors contiguous, on one CUDA device and of one dtype and shape;
// numbers beside them when they do not change the dtype. Returns false when the call does not
// qualify, having done nothing. Results go to a new tensor in `out`, or to `inplace`.
bool pointwise_fast(const iter::PointwiseSpec& spec, Tensor* out, const Tensor* inplace,
                    iter::Operands operands, iter::Params params);

// Every other call: `target` (a CUDA tensor) has the broadcast `shape`, `compute` is the dtype the
// functor works in, `result` that of its results.
void pointwise_general(const iter::PointwiseSpec& spec, const Tensor& target,
                       iter::Operands operands, iter::Params params, IntArrayRef shape,
                       ScalarType compute, ScalarType result);

// dst = src for tensors of the same shape on one CUDA device, of any strides and dtypes, on the
// current stream.
TORCH_API void copy_on_device(const Tensor& dst, const Tensor& src);
// dst = the elements at `from`, on dst's device and of its dtype, walked with `strides` (bytes, one
// per dimension of dst, may be negative).
TORCH_API void copy_walked_on_device(const Tensor& dst, const void* from, IntArrayRef strides);
// dst = value, on the current stream.
TORCH_API void fill_on_device(const Tensor& dst, const Scalar& value);

} // namespace at::cuda
