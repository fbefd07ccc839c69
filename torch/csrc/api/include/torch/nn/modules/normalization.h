// Normalisations as modules.
#pragma once
#include <torch/nn/functional/normalization.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

// Statistics and scale per channel: what batch and instance norm share.
template <class Derived, class Options> class TORCH_API NormImplBase : public Cloneable<Derived> {
 public:
  explicit NormImplBase(const Options& options_) : options(options_) {
    reset(); // NOLINT
  }
  void reset() override;
  void reset_running_stats();
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Options options;
  Tensor weight;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;

 protected:
  virtual void _check_input_dim(const Tensor& input) = 0;
};

#define CRESSET_NORM_MODULES(D)                                                                    \
  class TORCH_API BatchNorm##D##dImpl                                                              \
      : public NormImplBase<BatchNorm##D##dImpl, BatchNormOptions> {                               \
   public:                                                                                         \
    using NormImplBase<BatchNorm##D##dImpl, BatchNormOptions>::NormImplBase;                       \
    Tensor forward(const Tensor& input);                                                           \
                                                                                                   \
   protected:                                                                                      \
    void _check_input_dim(const Tensor& input) override;                                           \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(BatchNorm##D##d);                                                         \
  class TORCH_API InstanceNorm##D##dImpl                                                           \
      : public NormImplBase<InstanceNorm##D##dImpl, InstanceNormOptions> {                         \
   public:                                                                                         \
    using NormImplBase<InstanceNorm##D##dImpl, InstanceNormOptions>::NormImplBase;                 \
    Tensor forward(const Tensor& input);                                                           \
                                                                                                   \
   protected:                                                                                      \
    void _check_input_dim(const Tensor& input) override;                                           \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(InstanceNorm##D##d)
CRESSET_NORM_MODULES(1);
CRESSET_NORM_MODULES(2);
CRESSET_NORM_MODULES(3);
#undef CRESSET_NORM_MODULES

class TORCH_API LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  explicit LayerNormImpl(LayerNormOptions options_);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  LayerNormOptions options;
  Tensor weight;
  Tensor bias;
};
CRESSET_LIBRARY_MODULE(LayerNorm);

class TORCH_API GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels)
      : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options_);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  GroupNormOptions options;
  Tensor weight;
  Tensor bias;
};
CRESSET_LIBRARY_MODULE(GroupNorm);

CRESSET_FUNCTION_MODULE(LocalResponseNorm, LocalResponseNormOptions);
CRESSET_FUNCTION_MODULE(CrossMapLRN2d, CrossMapLRN2dOptions);

#define CRESSET_DROPOUT_MODULE(Name)                                                               \
  class TORCH_API Name##Impl : public Cloneable<Name##Impl> {                                      \
   public:                                                                                         \
    explicit Name##Impl(double p) : Name##Impl(DropoutOptions(p)) {}                               \
    explicit Name##Impl(const DropoutOptions& options_ = {});                                      \
    void reset() override;                                                                         \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(Tensor input);                                                                  \
    DropoutOptions options;                                                                        \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Name)
CRESSET_DROPOUT_MODULE(Dropout);
CRESSET_DROPOUT_MODULE(Dropout2d);
CRESSET_DROPOUT_MODULE(Dropout3d);
CRESSET_DROPOUT_MODULE(AlphaDropout);
CRESSET_DROPOUT_MODULE(FeatureAlphaDropout);
#undef CRESSET_DROPOUT_MODULE

#define CRESSET_DISTANCE_MODULE(Name)                                                              \
  class TORCH_API Name##Impl : public Cloneable<Name##Impl> {                                      \
   public:                                                                                         \
    explicit Name##Impl(const Name##Options& options_ = {}) : options(options_) {}                 \
    void reset() override {}                                                                       \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(const Tensor& x1, const Tensor& x2);                                            \
    Name##Options options;                                                                         \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Name)
CRESSET_DISTANCE_MODULE(CosineSimilarity);
CRESSET_DISTANCE_MODULE(PairwiseDistance);
#undef CRESSET_DISTANCE_MODULE

} // namespace torch::nn
