// Batches of a dataset that decides itself what comes next.
#pragma once
#include <torch/data/dataloader/base.h>

namespace torch::data {

template <class Dataset> class StatefulDataLoader
    : public DataLoaderBase<Dataset, typename Dataset::BatchType::value_type,
                            typename Dataset::BatchRequestType> {
 public:
  using super = DataLoaderBase<Dataset, typename Dataset::BatchType::value_type,
                               typename Dataset::BatchRequestType>;
  using typename super::BatchRequestType;
  StatefulDataLoader(Dataset dataset, DataLoaderOptions options)
      : super(std::move(options), std::move(dataset)) {}
  ~StatefulDataLoader() override { this->join(); }

 private:
  void reset() override {
    this->main_dataset().reset();
    super::reset();
  }
  std::optional<BatchRequestType> next_request() override {
    return BatchRequestType(this->options().batch_size);
  }
};

} // namespace torch::data
