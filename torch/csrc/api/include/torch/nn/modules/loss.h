// Losses as modules.
#pragma once
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

#define CRESSET_LOSS_MODULE(Name, Reset, ...)                                                      \
  class TORCH_API Name##Impl : public Cloneable<Name##Impl> {                                      \
   public:                                                                                         \
    explicit Name##Impl(Name##Options options_ = {}) : options(std::move(options_)) { Reset; }     \
    void reset() override;                                                                         \
    void pretty_print(std::ostream& stream) const override;                                        \
    Tensor forward(__VA_ARGS__);                                                                   \
    Name##Options options;                                                                         \
  };                                                                                               \
  CRESSET_LIBRARY_MODULE(Name)
#define CRESSET_PAIR const Tensor &input, const Tensor &target
CRESSET_LOSS_MODULE(L1Loss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(KLDivLoss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(MSELoss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(BCELoss, reset(), CRESSET_PAIR);
CRESSET_LOSS_MODULE(HingeEmbeddingLoss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(MultiMarginLoss, reset(), CRESSET_PAIR);
CRESSET_LOSS_MODULE(CosineEmbeddingLoss, , const Tensor& input1, const Tensor& input2,
                    const Tensor& target);
CRESSET_LOSS_MODULE(SmoothL1Loss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(HuberLoss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(MultiLabelMarginLoss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(SoftMarginLoss, , CRESSET_PAIR);
CRESSET_LOSS_MODULE(MultiLabelSoftMarginLoss, reset(), CRESSET_PAIR);
CRESSET_LOSS_MODULE(TripletMarginLoss, , const Tensor& anchor, const Tensor& positive,
                    const Tensor& negative);
CRESSET_LOSS_MODULE(TripletMarginWithDistanceLoss, , const Tensor& anchor, const Tensor& positive,
                    const Tensor& negative);
CRESSET_LOSS_MODULE(CTCLoss, , const Tensor& log_probs, const Tensor& targets,
                    const Tensor& input_lengths, const Tensor& target_lengths);
CRESSET_LOSS_MODULE(PoissonNLLLoss, , const Tensor& log_input, const Tensor& target);
CRESSET_LOSS_MODULE(MarginRankingLoss, , const Tensor& input1, const Tensor& input2,
                    const Tensor& target);
CRESSET_LOSS_MODULE(NLLLoss, reset(), CRESSET_PAIR);
CRESSET_LOSS_MODULE(CrossEntropyLoss, reset(), CRESSET_PAIR);
CRESSET_LOSS_MODULE(BCEWithLogitsLoss, reset(), CRESSET_PAIR);
#undef CRESSET_PAIR
#undef CRESSET_LOSS_MODULE

} // namespace torch::nn
