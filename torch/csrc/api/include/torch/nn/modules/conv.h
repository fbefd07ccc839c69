// Convolutions as modules. What does not depend on the number of dimensions is compiled once.
#pragma once
#include <torch/nn/functional/linear.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

// Weights of a convolution and of a transposed one, for D dimensions.
template <size_t D, class Derived, class Options> class TORCH_API ConvNdImpl
    : public Cloneable<Derived> {
 public:
  explicit ConvNdImpl(Options options_) : options(std::move(options_)) {}
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Options options;
  Tensor weight;
  Tensor bias;

 protected:
  // Padding on both sides of each dimension, last dimension first, as functional::pad takes it.
  std::vector<int64_t> _reversed_padding_repeated_twice;
};

#define CRESSET_CONV_MODULES(D)                                                                    \
  class TORCH_API Conv##D##dImpl : public ConvNdImpl<D, Conv##D##dImpl, ConvOptions<D>> {          \
   public:                                                                                         \
    Conv##D##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)       \
        : Conv##D##dImpl(ConvOptions<D>(in_channels, out_channels, kernel_size)) {}                \
    explicit Conv##D##dImpl(const ConvOptions<D>& options_);                                       \
    Tensor forward(const Tensor& input);                                                           \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Conv##D##d);                                                              \
  class TORCH_API ConvTranspose##D##dImpl                                                          \
      : public ConvNdImpl<D, ConvTranspose##D##dImpl, ConvTransposeOptions<D>> {                   \
   public:                                                                                         \
    ConvTranspose##D##dImpl(int64_t in_channels, int64_t out_channels,                             \
                            ExpandingArray<D> kernel_size)                                         \
        : ConvTranspose##D                                                                         \
          ##dImpl(ConvTransposeOptions<D>(in_channels, out_channels, kernel_size)) {}              \
    explicit ConvTranspose##D##dImpl(const ConvTransposeOptions<D>& options_);                     \
    Tensor forward(const Tensor& input,                                                            \
                   const std::optional<at::IntArrayRef>& output_size = std::nullopt);              \
                                                                                                   \
   protected:                                                                                      \
    FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(std::optional<at::IntArrayRef>())})                      \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(ConvTranspose##D##d)
CRESSET_CONV_MODULES(1);
CRESSET_CONV_MODULES(2);
CRESSET_CONV_MODULES(3);
#undef CRESSET_CONV_MODULES

} // namespace torch::nn
