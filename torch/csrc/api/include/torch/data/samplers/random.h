// Every index once per epoch, in an order drawn anew by each reset().
#pragma once
#include <torch/data/samplers/base.h>

namespace torch::data::samplers {

class TORCH_API RandomSampler : public Sampler<> {
 public:
  // `index_dtype` is the dtype of the permutation that is drawn.
  explicit RandomSampler(int64_t size, Dtype index_dtype = kInt64);
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  size_t index() const noexcept { return static_cast<size_t>(index_); }

 private:
  at::Tensor indices_;
  int64_t index_ = 0;
};

} // namespace torch::data::samplers
