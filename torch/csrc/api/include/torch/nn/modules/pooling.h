// Pooling as modules.
#pragma once
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

// A pool whose options are made from a kernel size or an output size alone.
#define CRESSET_POOL_MODULE(Name, Size, Members)                                                   \
  class TORCH_API Name##Impl : public Cloneable<Name##Impl> {                                      \
   public:                                                                                         \
    Name##Impl(Size size) : Name##Impl(Name##Options(size)) {}                                     \
    explicit Name##Impl(const Name##Options& options_) : options(options_) {}                      \
    void reset() override {}                                                                       \
    void pretty_print(std::ostream& stream) const override;                                        \
    Name##Options options;                                                                         \
    Members                                                                                        \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Name)
#define CRESSET_FORWARD Tensor forward(const Tensor& input);
#define CRESSET_FORWARD_WITH_INDICES                                                               \
  CRESSET_FORWARD                                                                                  \
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
#define CRESSET_UNPOOL_FORWARD                                                                     \
  Tensor forward(const Tensor& input, const Tensor& indices,                                       \
                 const std::optional<std::vector<int64_t>>& output_size = std::nullopt);           \
                                                                                                   \
 protected:                                                                                        \
  FORWARD_HAS_DEFAULT_ARGS({2, AnyValue(std::optional<std::vector<int64_t>>())})

CRESSET_POOL_MODULE(AvgPool1d, ExpandingArray<1>, CRESSET_FORWARD);
CRESSET_POOL_MODULE(AvgPool2d, ExpandingArray<2>, CRESSET_FORWARD);
CRESSET_POOL_MODULE(AvgPool3d, ExpandingArray<3>, CRESSET_FORWARD);
CRESSET_POOL_MODULE(MaxPool1d, ExpandingArray<1>, CRESSET_FORWARD_WITH_INDICES);
CRESSET_POOL_MODULE(MaxPool2d, ExpandingArray<2>, CRESSET_FORWARD_WITH_INDICES);
CRESSET_POOL_MODULE(MaxPool3d, ExpandingArray<3>, CRESSET_FORWARD_WITH_INDICES);
CRESSET_POOL_MODULE(AdaptiveAvgPool1d, ExpandingArray<1>, CRESSET_FORWARD);
CRESSET_POOL_MODULE(AdaptiveAvgPool2d, ExpandingArrayWithOptionalElem<2>, CRESSET_FORWARD);
CRESSET_POOL_MODULE(AdaptiveAvgPool3d, ExpandingArrayWithOptionalElem<3>, CRESSET_FORWARD);
CRESSET_POOL_MODULE(AdaptiveMaxPool1d, ExpandingArray<1>, CRESSET_FORWARD_WITH_INDICES);
CRESSET_POOL_MODULE(AdaptiveMaxPool2d, ExpandingArrayWithOptionalElem<2>,
                    CRESSET_FORWARD_WITH_INDICES);
CRESSET_POOL_MODULE(AdaptiveMaxPool3d, ExpandingArrayWithOptionalElem<3>,
                    CRESSET_FORWARD_WITH_INDICES);
CRESSET_POOL_MODULE(MaxUnpool1d, ExpandingArray<1>, CRESSET_UNPOOL_FORWARD);
CRESSET_POOL_MODULE(MaxUnpool2d, ExpandingArray<2>, CRESSET_UNPOOL_FORWARD);
CRESSET_POOL_MODULE(MaxUnpool3d, ExpandingArray<3>, CRESSET_UNPOOL_FORWARD);
#undef CRESSET_FORWARD
#undef CRESSET_FORWARD_WITH_INDICES
#undef CRESSET_UNPOOL_FORWARD
#undef CRESSET_POOL_MODULE

#define CRESSET_FRACTIONAL(D)                                                                      \
  class TORCH_API FractionalMaxPool##D##dImpl : public Cloneable<FractionalMaxPool##D##dImpl> {    \
   public:                                                                                         \
    FractionalMaxPool##D##dImpl(ExpandingArray<D> kernel_size)                                     \
        : FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions(kernel_size)) {}              \
    explicit FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions options_);                 \
    void reset() override;                                                                         \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(const Tensor& input);                                                           \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                          \
    FractionalMaxPool##D##dOptions options;                                                        \
    Tensor _random_samples;                                                                        \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(FractionalMaxPool##D##d)
CRESSET_FRACTIONAL(2);
CRESSET_FRACTIONAL(3);
#undef CRESSET_FRACTIONAL

#define CRESSET_LP_POOL(D)                                                                         \
  class TORCH_API LPPool##D##dImpl : public Cloneable<LPPool##D##dImpl> {                          \
   public:                                                                                         \
    LPPool##D##dImpl(double norm_type, ExpandingArray<D> kernel_size)                              \
        : LPPool##D##dImpl(LPPool##D##dOptions(norm_type, kernel_size)) {}                         \
    explicit LPPool##D##dImpl(const LPPool##D##dOptions& options_) : options(options_) {}          \
    void reset() override {}                                                                       \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(const Tensor& input);                                                           \
    LPPool##D##dOptions options;                                                                   \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(LPPool##D##d)
CRESSET_LP_POOL(1);
CRESSET_LP_POOL(2);
CRESSET_LP_POOL(3);
#undef CRESSET_LP_POOL

} // namespace torch::nn
