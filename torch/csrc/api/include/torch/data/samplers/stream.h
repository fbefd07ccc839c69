// Requests that are only a number of examples, for datasets which decide themselves what comes
// next.
#pragma once
#include <torch/data/samplers/base.h>
#include <torch/data/samplers/custom_batch_request.h>

namespace torch::data::samplers {

struct TORCH_API BatchSize : CustomBatchRequest {
  explicit BatchSize(size_t size) : size_(size) {}
  size_t size() const noexcept override { return size_; }
  operator size_t() const noexcept { return size_; }

 private:
  size_t size_;
};

class TORCH_API StreamSampler : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<BatchSize> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  size_t examples_retrieved_so_far_ = 0;
  size_t epoch_size_;
};

} // namespace torch::data::samplers
