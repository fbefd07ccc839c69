// Declares the members that modules without parameters have in common.
#pragma once
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/any.h>

// A module that is a function of one tensor and its options. `...` is the options' default, if any.
#define CRESSET_FUNCTION_MODULE(Name, Options, ...)                                                \
  class TORCH_API Name##Impl : public Cloneable<Name##Impl> {                                      \
   public:                                                                                         \
    explicit Name##Impl(const Options& options_ __VA_ARGS__) : options(options_) {}                \
    void reset() override {}                                                                       \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(const Tensor& input);                                                           \
    Options options;                                                                               \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Name)
// The same without options.
#define CRESSET_PLAIN_MODULE(Name)                                                                 \
  class TORCH_API Name##Impl : public Cloneable<Name##Impl> {                                      \
   public:                                                                                         \
    void reset() override {}                                                                       \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(const Tensor& input);                                                           \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Name)
