// Forward-mode differentiation: tensors that carry a tangent, and operators that carry it on.
//
// Note [Tangents from gradients]
// No operator has a forward formula of its own. The gradient v -> J^T v of an operator is linear in
// v, so that its own gradient with respect to v is t -> J t: the tangent of the results. One boxed
// kernel at a key above Autograd does this for every operator that has a gradient; operators made
// of others pass through it and their parts are treated. The kernel is registered when the first
// level is entered: programs without forward mode pay nothing.
#pragma once
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {

// Levels do not nest: one may be open at a time. Leaving it takes the tangents off all tensors.
TORCH_API int64_t enter_dual_level();
TORCH_API void exit_dual_level(int64_t level);
bool dual_level_is_open();

// A tensor that shares the data of `primal` and carries `tangent`.
TORCH_API Tensor make_dual(const Tensor& primal, const Tensor& tangent, int64_t level);
// Gives `t`, the result of a custom function, its tangent at the open level.
TORCH_API void carry_tangent(const Tensor& t, const Tensor& tangent);
// Gives what `saved` keeps of one of these outputs the tangent of that output: a backward pass that
// uses it is itself differentiated.
TORCH_API void share_tangents(const SavedVariable& saved, const std::vector<Tensor>& outputs);
// The tangent, or an undefined tensor.
TORCH_API Tensor tangent_of(const Tensor& t);
// The tensor without its tangent, as a view.
TORCH_API Tensor primal_of(const Tensor& t);

} // namespace torch::autograd
