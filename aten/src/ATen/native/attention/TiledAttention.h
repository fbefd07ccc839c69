// Attention of blocks of queries, for queries enough to fill registers: the scores lie with the
// queries side by side, so that keys and values are read where they are, a softmax is arithmetic on
// whole registers, and no operand is packed (Note [Scores by keys] in TiledAttention.cpp). A task
// is a block of queries of one head forward, and a head backward; its order is fixed.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace at::native {

// Whether the tiled way is meant for these numbers of queries and keys. Few queries leave most of a
// register empty; of very long sequences backward, a head is too much for one task.
bool tiled_forward_fits(int64_t queries);
bool tiled_backward_fits(int64_t queries, int64_t keys);

// One call's operands: float or double, all of one type, batch x heads x length x width with any
// strides. Keys and values may have fewer heads, which groups of query heads share. `bias` (may be
// undefined) is added to the scores: batch x heads x queries x keys, keys flush. `logsumexp` is
// contiguous, batch x heads x queries.
struct TiledOperands {
  const Tensor &query, &key, &value, &bias, &out, &logsumexp;
  double scale;
  bool causal;
};
// Fills `out` and `logsumexp`.
void tiled_forward(const TiledOperands& operands);
// Fills the gradients from that of `out`; those of keys and values have a head for each of the
// queries.
void tiled_backward(const TiledOperands& operands, const Tensor& grad, const Tensor& dq,
                    const Tensor& dk, const Tensor& dv);

} // namespace at::native
