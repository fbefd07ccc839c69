// Options of padding. The lists have two numbers per dimension, last dimension first.
#pragma once
#include <torch/arg.h>
#include <torch/enum.h>
#include <torch/expanding_array.h>
#include <torch/types.h>

namespace torch::nn {

template <size_t D> struct PadOptions {
  PadOptions(ExpandingArray<D * 2> padding) : padding_(padding) {}
  TORCH_ARG(ExpandingArray<D * 2>, padding);
};
template <size_t D> struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<D * 2> padding, double value)
      : padding_(padding), value_(value) {}
  TORCH_ARG(ExpandingArray<D * 2>, padding);
  TORCH_ARG(double, value);
};
#define CRESSET_PAD_OPTIONS(D)                                                                     \
  using ReflectionPad##D##dOptions = PadOptions<D>;                                                \
  using ReplicationPad##D##dOptions = PadOptions<D>;                                               \
  using ZeroPad##D##dOptions = PadOptions<D>;                                                      \
  using ConstantPad##D##dOptions = ConstantPadOptions<D>;
CRESSET_PAD_OPTIONS(1)
CRESSET_PAD_OPTIONS(2)
CRESSET_PAD_OPTIONS(3)
#undef CRESSET_PAD_OPTIONS

namespace functional {
struct PadFuncOptions {
  using mode_t = std::variant<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate,
                              enumtype::kCircular>;
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  TORCH_ARG(std::vector<int64_t>, pad);
  TORCH_ARG(mode_t, mode) = torch::kConstant;
  TORCH_ARG(double, value) = 0;
};
} // namespace functional
} // namespace torch::nn
