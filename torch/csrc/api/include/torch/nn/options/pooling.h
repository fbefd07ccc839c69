// Options of pooling.
#pragma once
#include <torch/arg.h>
#include <torch/enum.h>
#include <torch/expanding_array.h>
#include <torch/types.h>

namespace torch::nn {

template <size_t D> struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(bool, ceil_mode) = false;
  TORCH_ARG(bool, count_include_pad) = true;
  TORCH_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
template <size_t D> struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(bool, ceil_mode) = false;
};
template <class OutputSize> struct AdaptivePoolOptions {
  AdaptivePoolOptions(OutputSize output_size) : output_size_(output_size) {}
  TORCH_ARG(OutputSize, output_size);
};
template <size_t D> struct MaxUnpoolOptions {
  MaxUnpoolOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
};
template <size_t D> struct FractionalMaxPoolOptions {
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  using ratio_t = ExpandingArray<D, double>;
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(std::optional<ExpandingArray<D>>, output_size) = std::nullopt;
  TORCH_ARG(std::optional<ratio_t>, output_ratio) = std::nullopt;
  TORCH_ARG(torch::Tensor, _random_samples) = Tensor();
};
template <size_t D> struct LPPoolOptions {
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(double, norm_type);
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(bool, ceil_mode) = false;
};

#define CRESSET_POOL_OPTIONS(D)                                                                    \
  using AvgPool##D##dOptions = AvgPoolOptions<D>;                                                  \
  using MaxPool##D##dOptions = MaxPoolOptions<D>;                                                  \
  using MaxUnpool##D##dOptions = MaxUnpoolOptions<D>;                                              \
  using LPPool##D##dOptions = LPPoolOptions<D>;
CRESSET_POOL_OPTIONS(1)
CRESSET_POOL_OPTIONS(2)
CRESSET_POOL_OPTIONS(3)
#undef CRESSET_POOL_OPTIONS
using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;
using AdaptiveAvgPool1dOptions = AdaptivePoolOptions<ExpandingArray<1>>;
using AdaptiveAvgPool2dOptions = AdaptivePoolOptions<ExpandingArrayWithOptionalElem<2>>;
using AdaptiveAvgPool3dOptions = AdaptivePoolOptions<ExpandingArrayWithOptionalElem<3>>;
using AdaptiveMaxPool1dOptions = AdaptivePoolOptions<ExpandingArray<1>>;
using AdaptiveMaxPool2dOptions = AdaptivePoolOptions<ExpandingArrayWithOptionalElem<2>>;
using AdaptiveMaxPool3dOptions = AdaptivePoolOptions<ExpandingArrayWithOptionalElem<3>>;

namespace functional {
#define CRESSET_POOL_OPTIONS(D)                                                                    \
  using AvgPool##D##dFuncOptions = AvgPool##D##dOptions;                                           \
  using MaxPool##D##dFuncOptions = MaxPool##D##dOptions;                                           \
  using LPPool##D##dFuncOptions = LPPool##D##dOptions;                                             \
  using AdaptiveAvgPool##D##dFuncOptions = AdaptiveAvgPool##D##dOptions;                           \
  using AdaptiveMaxPool##D##dFuncOptions = AdaptiveMaxPool##D##dOptions;
CRESSET_POOL_OPTIONS(1)
CRESSET_POOL_OPTIONS(2)
CRESSET_POOL_OPTIONS(3)
#undef CRESSET_POOL_OPTIONS
using FractionalMaxPool2dFuncOptions = FractionalMaxPool2dOptions;
using FractionalMaxPool3dFuncOptions = FractionalMaxPool3dOptions;

template <size_t D> struct MaxUnpoolFuncOptions {
  MaxUnpoolFuncOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(std::optional<std::vector<int64_t>>, output_size) = std::nullopt;
};
using MaxUnpool1dFuncOptions = MaxUnpoolFuncOptions<1>;
using MaxUnpool2dFuncOptions = MaxUnpoolFuncOptions<2>;
using MaxUnpool3dFuncOptions = MaxUnpoolFuncOptions<3>;
} // namespace functional
} // namespace torch::nn
