// The saved tensors of generated nodes as objects, for hooks on a single one of them
// (grad_fn._raw_saved_self.register_hooks).
#pragma once
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {

// What a field of a node holds: no tensor, one, or a list of them.
enum class SavedKind : uint8_t { Other, Tensor, TensorList };
TORCH_API SavedKind saved_kind(const SavedField& field);
// How many tensors the field of this node holds.
TORCH_API size_t saved_count(const SavedField& field, Node& node);
// The i-th of them. The node owns it; raises IndexError when there are fewer.
TORCH_API SavedVariable& saved_variable(const SavedField& field, Node& node, size_t i);

} // namespace torch::autograd
