// Datasets that know themselves what comes next, and when an epoch is over.
#pragma once
#include <torch/data/datasets/base.h>
#include <torch/serialize.h>

namespace torch::data::datasets {

template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, BatchRequest> {
 public:
  static constexpr bool is_stateful = true;
  // Starts a new epoch. Several workers may call get_batch at once on a shared dataset; it returns
  // nothing when the epoch is over.
  virtual void reset() = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

template <class... Ts> serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                                            const StatefulDataset<Ts...>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class... Ts> serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                                           StatefulDataset<Ts...>& dataset) {
  dataset.load(archive);
  return archive;
}

} // namespace torch::data::datasets
