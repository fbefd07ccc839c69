// Gradients of operators that are themselves gradients ("gelu_backward"), worked out from the
// forward function. Such an operator is the product of a gradient with the slope of a function f;
// the function written with simple operators is differentiated twice. Used where no short formula
// exists: it is paid only by those who ask for second derivatives.
#pragma once
#include <functional>

#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

// f by its inputs; an undefined tensor stands for an absent one.
using Forward = std::function<Tensor(const Tensors&)>;

// The operator gave the gradients of f at its first `grads.size()` inputs for `grad_output`;
// `grads` arrive for these. Returns the gradients of grad_output and of the inputs where `needed`
// (0 stands for grad_output, i for inputs[i - 1]).
Tensors second_order_list(const std::vector<bool>& needed, const Forward& f, const TensorVec& grads,
                          const Tensor& grad_output, const Tensors& inputs);

template <size_t N> std::array<Tensor, N> second_order(const std::array<bool, N>& mask,
                                                       const Forward& f, const TensorVec& grads,
                                                       const Tensor& grad_output,
                                                       const Tensors& inputs) {
  const Tensors found =
      second_order_list(std::vector<bool>(mask.begin(), mask.end()), f, grads, grad_output, inputs);
  std::array<Tensor, N> out;
  for (size_t i = 0; i < N; ++i) out[i] = found[i];
  return out;
}

inline Tensor or_undefined(const OptionalTensor& t) { return t ? *t : Tensor(); }

// A bias that the operator was not given, for the gradient `i` that it returned for it.
Tensor stand_in(const TensorVec& grads, size_t i);

// ---- forward functions
Forward silu_forward();
Forward mish_forward();
Forward gelu_forward(std::string_view approximate);
Forward glu_forward(int64_t dim);
Forward softplus_forward(const Scalar& beta, const Scalar& threshold);
Forward prelu_forward();
Forward logit_forward(std::optional<double> eps);
Forward mse_forward(int64_t reduction);
// Of a matrix of scores, by the operators it is made of.
Forward cross_entropy_forward(const Tensor& target, const std::optional<Tensor>& weight,
                              int64_t reduction, int64_t ignore_index);
Forward smooth_l1_forward(int64_t reduction, double beta);
Forward huber_forward(int64_t reduction, double delta);
Forward soft_margin_forward(int64_t reduction);
Forward bce_forward(int64_t reduction); // input, target, weight
// input, weight, bias. Mean and reciprocal deviation are functions of the input; eps is what the
// saved ones leave.
Forward layer_norm_forward(IntArrayRef shape, const Tensor& rstd);
Forward rms_norm_forward(IntArrayRef shape, const Tensor& rstd);
Forward group_norm_forward(const Tensor& rstd, int64_t n, int64_t c, int64_t hxw, int64_t group);
Forward batch_norm_forward(const Tensor& running_mean, const Tensor& running_var, bool train,
                           double eps);
Forward cdist_forward(double p); // two batches of matrices
Forward pdist_forward(double p); // one matrix
// input, grid; the numbers of the operator's modes.
Forward grid_sample_forward(int64_t mode, int64_t padding, bool align_corners);

// Of _rnn_layer_backward, whose eleven differentiable arguments are `inputs`.
std::array<Tensor, 11> rnn_second_order(const std::array<bool, 11>& mask, const TensorVec& grads,
                                        const Tensors& inputs, IntArrayRef batch_sizes,
                                        int64_t mode, bool reverse);
// The name of a recurrent layer's node: that of the last operator of PyTorch's own layer.
const char* rnn_layer_node(at::ScalarType dtype, const OptionalTensor& w_hr,
                           IntArrayRef batch_sizes, int64_t mode);

} // namespace torch::autograd::generated
