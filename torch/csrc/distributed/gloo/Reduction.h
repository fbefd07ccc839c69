// The element-wise functions that Gloo's reductions call. They are the library's own operators on
// tensors over Gloo's buffers, so that every dtype reduces here as it does elsewhere.
#pragma once
#include <functional>

#include <torch/csrc/distributed/c10d/Collective.h>

namespace c10d::engine::gloo_backend {

// c = a (op) b over n elements; c may be a.
using ReduceFunction = std::function<void(void* c, const void* a, const void* b, size_t n)>;

// Throws where the operation does not exist for the dtype.
ReduceFunction reduce_function(ReduceOp::Kind kind, at::ScalarType dtype);
// What an operation does to this rank's values before they are combined, and to the result
// afterwards: the factor of PREMUL_SUM, the division of AVG.
void scale_before(const ReduceOp& op, const at::Tensor& tensor);
void scale_after(const ReduceOp& op, const at::Tensor& tensor, int size);

} // namespace c10d::engine::gloo_backend
