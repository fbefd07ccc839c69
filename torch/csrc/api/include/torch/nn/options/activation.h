// Options of activations.
#pragma once
#include <torch/arg.h>
#include <torch/enum.h>
#include <torch/types.h>

namespace torch::nn {

// Options of the functions that may work in place and take nothing else.
#define CRESSET_INPLACE_OPTIONS(Name)                                                              \
  struct Name {                                                                                    \
    Name(bool inplace = false) : inplace_(inplace) {}                                              \
    TORCH_ARG(bool, inplace);                                                                      \
  }
CRESSET_INPLACE_OPTIONS(SELUOptions);
CRESSET_INPLACE_OPTIONS(ReLUOptions);
CRESSET_INPLACE_OPTIONS(ReLU6Options);
#undef CRESSET_INPLACE_OPTIONS

// Options of the functions along one dimension.
#define CRESSET_DIM_OPTIONS(Name)                                                                  \
  struct Name {                                                                                    \
    Name(int64_t dim) : dim_(dim) {}                                                               \
    TORCH_ARG(int64_t, dim);                                                                       \
  }
CRESSET_DIM_OPTIONS(SoftmaxOptions);
CRESSET_DIM_OPTIONS(SoftminOptions);
CRESSET_DIM_OPTIONS(LogSoftmaxOptions);
#undef CRESSET_DIM_OPTIONS

struct ELUOptions {
  TORCH_ARG(double, alpha) = 1.0;
  TORCH_ARG(bool, inplace) = false;
};
struct GLUOptions {
  GLUOptions(int64_t dim = -1) : dim_(dim) {}
  TORCH_ARG(int64_t, dim);
};
struct GELUOptions {
  TORCH_ARG(std::string, approximate) = "none";
};
struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  TORCH_ARG(double, lambda);
};
struct HardtanhOptions {
  TORCH_ARG(double, min_val) = -1.0;
  TORCH_ARG(double, max_val) = 1.0;
  TORCH_ARG(bool, inplace) = false;
};
struct LeakyReLUOptions {
  TORCH_ARG(double, negative_slope) = 1e-2;
  TORCH_ARG(bool, inplace) = false;
};
struct PReLUOptions {
  TORCH_ARG(int64_t, num_parameters) = 1;
  TORCH_ARG(double, init) = 0.25;
};
struct RReLUOptions {
  TORCH_ARG(double, lower) = 1.0 / 8.0;
  TORCH_ARG(double, upper) = 1.0 / 3.0;
  TORCH_ARG(bool, inplace) = false;
};
struct CELUOptions {
  TORCH_ARG(double, alpha) = 1.0;
  TORCH_ARG(bool, inplace) = false;
};
struct SoftplusOptions {
  TORCH_ARG(double, beta) = 1.0;
  TORCH_ARG(double, threshold) = 20.0;
};
struct SoftshrinkOptions {
  SoftshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  TORCH_ARG(double, lambda);
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  TORCH_ARG(double, threshold);
  TORCH_ARG(double, value);
  TORCH_ARG(bool, inplace) = false;
};
struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, add_bias_kv) = false;
  TORCH_ARG(bool, add_zero_attn) = false;
  TORCH_ARG(int64_t, kdim);
  TORCH_ARG(int64_t, vdim);
};

namespace functional {
using ELUFuncOptions = ELUOptions;
using SELUFuncOptions = SELUOptions;
using GLUFuncOptions = GLUOptions;
using GELUFuncOptions = GELUOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using HardtanhFuncOptions = HardtanhOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using CELUFuncOptions = CELUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using ThresholdFuncOptions = ThresholdOptions;

#define CRESSET_DIM_OPTIONS(Name)                                                                  \
  struct Name {                                                                                    \
    Name(int64_t dim) : dim_(dim) {}                                                               \
    TORCH_ARG(int64_t, dim);                                                                       \
    TORCH_ARG(std::optional<torch::Dtype>, dtype) = std::nullopt;                                  \
  }
CRESSET_DIM_OPTIONS(SoftmaxFuncOptions);
CRESSET_DIM_OPTIONS(SoftminFuncOptions);
CRESSET_DIM_OPTIONS(LogSoftmaxFuncOptions);
#undef CRESSET_DIM_OPTIONS

struct GumbelSoftmaxFuncOptions {
  TORCH_ARG(double, tau) = 1.0;
  TORCH_ARG(bool, hard) = false;
  TORCH_ARG(int, dim) = -1;
};
struct RReLUFuncOptions {
  TORCH_ARG(double, lower) = 1.0 / 8.0;
  TORCH_ARG(double, upper) = 1.0 / 3.0;
  TORCH_ARG(bool, training) = false;
  TORCH_ARG(bool, inplace) = false;
};
struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads,
                                       Tensor in_proj_weight, Tensor in_proj_bias, Tensor bias_k,
                                       Tensor bias_v, bool add_zero_attn, double dropout_p,
                                       Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check), num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)), in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)), bias_v_(std::move(bias_v)), add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p), out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  TORCH_ARG(int64_t, embed_dim_to_check);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(Tensor, in_proj_weight);
  TORCH_ARG(Tensor, in_proj_bias);
  TORCH_ARG(Tensor, bias_k);
  TORCH_ARG(Tensor, bias_v);
  TORCH_ARG(bool, add_zero_attn);
  TORCH_ARG(double, dropout_p);
  TORCH_ARG(Tensor, out_proj_weight);
  TORCH_ARG(Tensor, out_proj_bias);
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(Tensor, key_padding_mask) = {};
  TORCH_ARG(bool, need_weights) = true;
  TORCH_ARG(Tensor, attn_mask) = {};
  TORCH_ARG(bool, use_separate_proj_weight) = false;
  TORCH_ARG(Tensor, q_proj_weight) = {};
  TORCH_ARG(Tensor, k_proj_weight) = {};
  TORCH_ARG(Tensor, v_proj_weight) = {};
  TORCH_ARG(Tensor, static_k) = {};
  TORCH_ARG(Tensor, static_v) = {};
  TORCH_ARG(bool, average_attn_weights) = true;
};
} // namespace functional
} // namespace torch::nn
