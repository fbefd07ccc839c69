// The interfaces of datasets. A BatchDataset gives a batch for a request, a Dataset one example for
// an index, a StreamDataset the next examples of a stream.
#pragma once
#include <optional>
#include <vector>

#include <torch/data/example.h>

namespace torch::data::datasets {

template <class SourceDataset, class AppliedTransform> class MapDataset;
template <class SourceDataset, class AppliedTransform>
MapDataset<SourceDataset, AppliedTransform> map(SourceDataset dataset, AppliedTransform transform);

template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = false;
  virtual ~BatchDataset() = default;

  virtual Batch get_batch(BatchRequest request) = 0;
  // How many examples there are; nothing where that is not known.
  virtual std::optional<size_t> size() const = 0;

  // This dataset with a transform after it: a copy of it, or itself where it is a temporary.
  template <class TransformType> MapDataset<Self, TransformType> map(TransformType transform) & {
    return datasets::map(static_cast<Self&>(*this), std::move(transform));
  }
  template <class TransformType> MapDataset<Self, TransformType> map(TransformType transform) && {
    return datasets::map(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
};

template <class Self, class SingleExample = Example<>> class Dataset
    : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

template <class Self, class Batch = std::vector<Example<>>> using StreamDataset =
    BatchDataset<Self, Batch, size_t>;

} // namespace torch::data::datasets
