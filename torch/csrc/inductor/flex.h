// Attention with functions of scores (ATen/native/attention/FlexAttention.h) whose functions are
// compiled graphs over tiles.
#pragma once
#include <vector>

#include <ATen/native/attention/FlexAttention.h>
#include <torch/csrc/inductor/plan.h>

namespace torch::inductor {

// Graphs over a tile; null where scores, or their gradients, stay as they are. A score graph takes
// (scores, batch, head, query, key, *buffers) and returns scores; a gradient graph takes (scores,
// batch, head, query, key, gradient, *buffers, *sums) and returns the gradient of the scores,
// having added those of buffers to the sums. `full`: where the mask allows everything; `partial`:
// where it is asked.
struct FlexGraphs {
  Compiled *full = nullptr, *partial = nullptr;
  std::vector<at::IValue> buffers;
  Compiled *full_gradient = nullptr, *partial_gradient = nullptr;
  std::vector<std::vector<at::IValue>> sums; // by part
};

// `operands` without functions.
TORCH_API at::native::flex::Results flex_forward(at::native::flex::Operands operands,
                                                 const FlexGraphs& graphs);
TORCH_API at::native::flex::Gradients
flex_backward(at::native::flex::Operands operands, const at::native::flex::Results& results,
              const at::Tensor& grad, const at::Tensor& grad_logsumexp, const FlexGraphs& graphs);

} // namespace torch::inductor
