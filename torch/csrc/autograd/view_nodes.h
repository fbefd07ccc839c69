// The two nodes that keep views and in-place writes right. See Note [In-place writes and views].
#pragma once
#include <torch/csrc/autograd/node.h>

namespace torch::autograd {

// The grad_fn of `view` as a function of its base's present history.
c10::intrusive_ptr<Node> make_view_replay(const Tensor& view, const Tensor& base);

// The history of `base` after `view` of it was written by `write`: the gradient of the elements in
// the view goes through `write`, the rest to the base's former history.
c10::intrusive_ptr<Node> make_copy_slices(const Tensor& base, const Tensor& view,
                                          c10::intrusive_ptr<Node> write);

// While the backward of a write to a view runs: the history of that view, whose value after the
// write `write` has saved. It leads to the base's history, which contains `write`; a gradient for
// the saved value that went to `write` itself would run it a second time. Null for other nodes.
c10::intrusive_ptr<Node> history_of_written_view(const Node* write, const Tensor& view);

} // namespace torch::autograd
