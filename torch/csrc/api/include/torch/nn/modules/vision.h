// Padding, resampling, folding and shuffling as modules.
#pragma once
#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/vision.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

#define CRESSET_PAD_MODULE(Name, D)                                                                \
  class TORCH_API Name##D##dImpl : public Cloneable<Name##D##dImpl> {                              \
   public:                                                                                         \
    Name##D##dImpl(ExpandingArray<D * 2> padding) : Name##D##dImpl(Name##D##dOptions(padding)) {}  \
    explicit Name##D##dImpl(const Name##D##dOptions& options_) : options(options_) {}              \
    void reset() override {}                                                                       \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(const Tensor& input);                                                           \
    Name##D##dOptions options;                                                                     \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Name##D##d)
#define CRESSET_CONSTANT_PAD_MODULE(D)                                                             \
  class TORCH_API ConstantPad##D##dImpl : public Cloneable<ConstantPad##D##dImpl> {                \
   public:                                                                                         \
    ConstantPad##D##dImpl(ExpandingArray<D * 2> padding, double value)                             \
        : ConstantPad##D##dImpl(ConstantPad##D##dOptions(padding, value)) {}                       \
    explicit ConstantPad##D##dImpl(const ConstantPad##D##dOptions& options_)                       \
        : options(options_) {}                                                                     \
    void reset() override {}                                                                       \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(const Tensor& input);                                                           \
    ConstantPad##D##dOptions options;                                                              \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(ConstantPad##D##d)
#define CRESSET_PAD_MODULES(D)                                                                     \
  CRESSET_PAD_MODULE(ReflectionPad, D);                                                            \
  CRESSET_PAD_MODULE(ReplicationPad, D);                                                           \
  CRESSET_PAD_MODULE(ZeroPad, D);                                                                  \
  CRESSET_CONSTANT_PAD_MODULE(D)
CRESSET_PAD_MODULES(1);
CRESSET_PAD_MODULES(2);
CRESSET_PAD_MODULES(3);
#undef CRESSET_PAD_MODULES
#undef CRESSET_PAD_MODULE
#undef CRESSET_CONSTANT_PAD_MODULE

CRESSET_FUNCTION_MODULE(Upsample, UpsampleOptions, = {});
CRESSET_FUNCTION_MODULE(PixelShuffle, PixelShuffleOptions);
CRESSET_FUNCTION_MODULE(PixelUnshuffle, PixelUnshuffleOptions);

class TORCH_API FoldImpl : public Cloneable<FoldImpl> {
 public:
  FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : FoldImpl(FoldOptions(output_size, kernel_size)) {}
  explicit FoldImpl(const FoldOptions& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  FoldOptions options;
};
CRESSET_LIBRARY_MODULE(Fold);

class TORCH_API UnfoldImpl : public Cloneable<UnfoldImpl> {
 public:
  UnfoldImpl(ExpandingArray<2> kernel_size) : UnfoldImpl(UnfoldOptions(kernel_size)) {}
  explicit UnfoldImpl(const UnfoldOptions& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  UnfoldOptions options;
};
CRESSET_LIBRARY_MODULE(Unfold);

} // namespace torch::nn
