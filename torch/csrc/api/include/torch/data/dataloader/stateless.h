// Batches of a dataset that a sampler asks for.
#pragma once
#include <torch/data/dataloader/base.h>

namespace torch::data {

template <class Dataset, class Sampler> class StatelessDataLoader
    : public DataLoaderBase<Dataset, typename Dataset::BatchType,
                            typename Sampler::BatchRequestType> {
 public:
  using super =
      DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType>;
  using typename super::BatchRequestType;
  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : super(std::move(options), std::move(dataset)), sampler_(std::move(sampler)) {}
  ~StatelessDataLoader() override { this->join(); }

 private:
  void reset() override {
    sampler_.reset(std::nullopt);
    super::reset();
  }
  std::optional<BatchRequestType> next_request() override {
    auto request = sampler_.next(this->options().batch_size);
    if (request && this->options().drop_last && request->size() < this->options().batch_size)
      return std::nullopt;
    return request;
  }
  Sampler sampler_;
};

} // namespace torch::data
