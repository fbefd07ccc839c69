// A dataset with a transform after it.
#pragma once
#include <type_traits>

#include <torch/data/datasets/base.h>

namespace torch::data::datasets {
namespace detail {
// A stateful dataset has no batch at the end of its epoch; nor has what is made of it.
template <bool stateful, class T> using maybe_optional =
    std::conditional_t<stateful, std::optional<T>, T>;
} // namespace detail

template <class SourceDataset, class AppliedTransform> class MapDataset
    : public BatchDataset<MapDataset<SourceDataset, AppliedTransform>,
                          detail::maybe_optional<SourceDataset::is_stateful,
                                                 typename AppliedTransform::OutputBatchType>,
                          typename SourceDataset::BatchRequestType> {
 public:
  using DatasetType = SourceDataset;
  using TransformType = AppliedTransform;
  using BatchRequestType = typename SourceDataset::BatchRequestType;
  using OutputBatchType =
      detail::maybe_optional<SourceDataset::is_stateful, typename TransformType::OutputBatchType>;
  static constexpr bool is_stateful = SourceDataset::is_stateful;

  MapDataset(DatasetType dataset, TransformType transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  OutputBatchType get_batch(BatchRequestType indices) override {
    if constexpr (is_stateful) {
      auto batch = dataset_.get_batch(std::move(indices));
      if (!batch) return std::nullopt;
      return transform_.apply_batch(std::move(*batch));
    } else {
      return transform_.apply_batch(dataset_.get_batch(std::move(indices)));
    }
  }
  std::optional<size_t> size() const noexcept override { return dataset_.size(); }
  // Of stateful datasets.
  void reset() { dataset_.reset(); }
  const SourceDataset& dataset() noexcept { return dataset_; }
  const AppliedTransform& transform() noexcept { return transform_; }

 private:
  SourceDataset dataset_;
  AppliedTransform transform_;
};

template <class DatasetType, class TransformType>
MapDataset<DatasetType, TransformType> map(DatasetType dataset, TransformType transform) {
  static_assert(
      std::is_same_v<std::conditional_t<DatasetType::is_stateful,
                                        std::optional<typename TransformType::InputBatchType>,
                                        typename TransformType::InputBatchType>,
                     typename DatasetType::BatchType>,
      "the transform must take the batches that the dataset gives");
  return {std::move(dataset), std::move(transform)};
}

} // namespace torch::data::datasets
