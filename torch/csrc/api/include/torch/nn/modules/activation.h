// Activations as modules.
#pragma once
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/linear.h>

namespace torch::nn {

CRESSET_FUNCTION_MODULE(ELU, ELUOptions, = {});
CRESSET_FUNCTION_MODULE(SELU, SELUOptions, = {});
CRESSET_FUNCTION_MODULE(Hardshrink, HardshrinkOptions, = {});
CRESSET_FUNCTION_MODULE(LeakyReLU, LeakyReLUOptions, = {});
CRESSET_FUNCTION_MODULE(Softmax, SoftmaxOptions);
CRESSET_FUNCTION_MODULE(Softmin, SoftminOptions);
CRESSET_FUNCTION_MODULE(LogSoftmax, LogSoftmaxOptions);
CRESSET_FUNCTION_MODULE(ReLU, ReLUOptions, = {});
CRESSET_FUNCTION_MODULE(ReLU6, ReLU6Options, = {});
CRESSET_FUNCTION_MODULE(RReLU, RReLUOptions, = {});
CRESSET_FUNCTION_MODULE(CELU, CELUOptions, = {});
CRESSET_FUNCTION_MODULE(GLU, GLUOptions, = {});
CRESSET_FUNCTION_MODULE(GELU, GELUOptions, = {});
CRESSET_FUNCTION_MODULE(Softplus, SoftplusOptions, = {});
CRESSET_FUNCTION_MODULE(Softshrink, SoftshrinkOptions, = {});
CRESSET_PLAIN_MODULE(LogSigmoid);
CRESSET_PLAIN_MODULE(Softmax2d);
CRESSET_PLAIN_MODULE(SiLU);
CRESSET_PLAIN_MODULE(Mish);
CRESSET_PLAIN_MODULE(Sigmoid);
CRESSET_PLAIN_MODULE(Softsign);
CRESSET_PLAIN_MODULE(Tanh);
CRESSET_PLAIN_MODULE(Tanhshrink);

class TORCH_API HardtanhImpl : public Cloneable<HardtanhImpl> {
 public:
  explicit HardtanhImpl(const HardtanhOptions& options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  HardtanhOptions options;
};
CRESSET_LIBRARY_MODULE(Hardtanh);

class TORCH_API ThresholdImpl : public Cloneable<ThresholdImpl> {
 public:
  ThresholdImpl(double threshold, double value)
      : ThresholdImpl(ThresholdOptions(threshold, value)) {}
  explicit ThresholdImpl(const ThresholdOptions& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  ThresholdOptions options;
};
CRESSET_LIBRARY_MODULE(Threshold);

class TORCH_API PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  explicit PReLUImpl(const PReLUOptions& options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  PReLUOptions options;
  Tensor weight;
};
CRESSET_LIBRARY_MODULE(PReLU);

class TORCH_API MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options_);
  // The output and, where asked for, the attention weights. Tensors are [length, batch, feature].
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {},
                                     bool average_attn_weights = true);
  void reset() override;
  void _reset_parameters();

  MultiheadAttentionOptions options;
  bool _qkv_same_embed_dim = true;
  Tensor in_proj_weight;
  Tensor in_proj_bias;
  Linear out_proj = nullptr;
  Tensor bias_k;
  Tensor bias_v;
  int64_t head_dim = 0;
  Tensor q_proj_weight;
  Tensor k_proj_weight;
  Tensor v_proj_weight;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({3, AnyValue(Tensor())}, {4, AnyValue(true)}, {5, AnyValue(Tensor())},
                           {6, AnyValue(true)})
};
CRESSET_LIBRARY_MODULE(MultiheadAttention);

} // namespace torch::nn
