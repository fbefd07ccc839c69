// Attention by cuDNN: softmax(query key^T scale + bias) value and its gradients as one graph of
// operations each, for which cuDNN makes a fused kernel. A call is described by plain numbers; the
// plan made from them is kept in a table of the calling thread. Making one compiles a kernel, which
// takes most of a second.
#pragma once

#include <cstdint>

#include <c10/core/ScalarType.h>
#include <c10/cuda/DriverTypes.h>

namespace at::cuda {

// All tensors have four dimensions (batch, head, row, dim), of which dim is contiguous; strides are
// given for the other three, in elements, and pointers are aligned to 16 bytes. The gradient of the
// output has the output's strides. Hashed and compared byte by byte: no padding, and unused members
// are zero.
struct CudnnAttention {
  int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, dim = 0, value_dim = 0;
  int64_t q[3] = {}, k[3] = {}, v[3] = {}, out[3] = {};
  int64_t dq[3] = {}, dk[3] = {}, dv[3] = {}; // of a backward pass
  int64_t bias_sizes[4] = {}, bias[3] = {};   // sizes of 1 repeat; all zero: no bias
  uint64_t keep = 0;                          // bits of the double 1 - p; 0: no dropout
  int32_t device = 0;
  int8_t dtype = 0; // c10::ScalarType
  bool causal = false, backward = false;
  uint8_t unused = 0; // fills the last word
};

struct CudnnAttentionData {
  const void *q, *k, *v, *out;
  const void* lse;  // batch x heads x queries floats: logarithms of the sums of exponentials
  const void* bias; // of the operands' dtype
  const void* seed; // two int64 on the device, 16 bytes apart: seed and offset of the dropout
  double scale;
  const void *grad, *dq, *dk, *dv; // of a backward pass
};

// Whether cuDNN is there and has a kernel; makes the plan.
bool has_attention_plan(const CudnnAttention& attention);

// Queues the forward or the backward pass on `stream`; there must be a plan. Throws c10::Error
// naming the shape when the kernel fails.
void run_attention(const CudnnAttention& attention, const CudnnAttentionData& data,
                   c10::cuda::CUstream stream);

} // namespace at::cuda
