// Options of losses.
#pragma once
#include <functional>

#include <torch/arg.h>
#include <torch/enum.h>
#include <torch/types.h>

namespace torch::nn {

using LossReduction = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;

// Losses without options but the reduction.
#define CRESSET_REDUCTION_OPTIONS(Name)                                                            \
  struct Name {                                                                                    \
    using reduction_t = LossReduction;                                                             \
    Name(reduction_t reduction = torch::kMean) : reduction_(reduction) {}                          \
    Name(enumtype::kNone reduction) : reduction_(reduction) {}                                     \
    Name(enumtype::kMean reduction) : reduction_(reduction) {}                                     \
    Name(enumtype::kSum reduction) : reduction_(reduction) {}                                      \
    TORCH_ARG(reduction_t, reduction);                                                             \
  }
CRESSET_REDUCTION_OPTIONS(L1LossOptions);
CRESSET_REDUCTION_OPTIONS(MSELossOptions);
CRESSET_REDUCTION_OPTIONS(MultiLabelMarginLossOptions);
CRESSET_REDUCTION_OPTIONS(SoftMarginLossOptions);
#undef CRESSET_REDUCTION_OPTIONS

struct KLDivLossOptions {
  using reduction_t =
      std::variant<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions(reduction_t reduction = torch::kMean) : reduction_(reduction) {}
  template <class Name, class = decltype(Name::text)> KLDivLossOptions(Name name)
      : reduction_(name) {}
  TORCH_ARG(reduction_t, reduction);
  TORCH_ARG(bool, log_target) = false;
};
struct BCELossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct HingeEmbeddingLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct MultiMarginLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(int64_t, p) = 1;
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(Tensor, weight) = Tensor();
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct CosineEmbeddingLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(double, margin) = 0.0;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct MultiLabelSoftMarginLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(Tensor, weight) = Tensor();
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct TripletMarginLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct TripletMarginWithDistanceLossOptions {
  using reduction_t = LossReduction;
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  TORCH_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct CTCLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(int64_t, blank) = 0;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(bool, zero_infinity) = false;
};
struct SmoothL1LossOptions {
  using reduction_t = LossReduction;
  SmoothL1LossOptions(reduction_t reduction = torch::kMean) : reduction_(reduction) {}
  template <class Name, class = decltype(Name::text)> SmoothL1LossOptions(Name name)
      : reduction_(name) {}
  TORCH_ARG(reduction_t, reduction);
  TORCH_ARG(std::optional<double>, beta) = std::nullopt;
};
struct HuberLossOptions {
  using reduction_t = LossReduction;
  HuberLossOptions(reduction_t reduction = torch::kMean) : reduction_(reduction) {}
  template <class Name, class = decltype(Name::text)> HuberLossOptions(Name name)
      : reduction_(name) {}
  TORCH_ARG(reduction_t, reduction);
  TORCH_ARG(double, delta) = 1.0;
};
struct PoissonNLLLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(bool, log_input) = true;
  TORCH_ARG(bool, full) = false;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct MarginRankingLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(double, margin) = 0;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct NLLLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct CrossEntropyLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(double, label_smoothing) = 0.0;
};
struct BCEWithLogitsLossOptions {
  using reduction_t = LossReduction;
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(Tensor, pos_weight) = {};
};

namespace functional {
using L1LossFuncOptions = L1LossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using MSELossFuncOptions = MSELossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
} // namespace functional
} // namespace torch::nn
