// Activations and attention as functions.
#pragma once
#include <torch/nn/options/activation.h>

namespace torch::nn::functional {

TORCH_API Tensor elu(Tensor input, const ELUFuncOptions& options = {});
TORCH_API Tensor selu(Tensor input, const SELUFuncOptions& options = {});
TORCH_API Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
TORCH_API Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options = {});
TORCH_API Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
TORCH_API Tensor logsigmoid(const Tensor& input);
TORCH_API Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});
TORCH_API Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
TORCH_API Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);
TORCH_API Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
TORCH_API Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
TORCH_API Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
TORCH_API Tensor silu(const Tensor& input);
TORCH_API Tensor mish(const Tensor& input);
TORCH_API Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
TORCH_API Tensor relu6(Tensor input, const ReLU6FuncOptions& options = {});
TORCH_API Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});
TORCH_API Tensor celu(Tensor input, const CELUFuncOptions& options = {});
TORCH_API Tensor prelu(const Tensor& input, const Tensor& weight);
TORCH_API Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
TORCH_API Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
TORCH_API Tensor softsign(const Tensor& input);
TORCH_API Tensor tanhshrink(const Tensor& input);
TORCH_API Tensor threshold(Tensor input, const ThresholdFuncOptions& options);
// The output and, where asked for, the attention weights.
TORCH_API std::tuple<Tensor, Tensor>
multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                             const MultiheadAttentionForwardFuncOptions& options);

} // namespace torch::nn::functional
