// Samplers for several processes, each of which takes a share of the dataset. Where the examples do
// not divide evenly, every share is as large as the largest and some examples come twice, or, with
// `allow_duplicates` off, as small as the smallest and some are left out.
#pragma once
#include <torch/data/samplers/base.h>

namespace torch::data::samplers {

class TORCH_API DistributedShare : public Sampler<> {
 public:
  DistributedShare(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates);
  // Every replica of an epoch must set the same one: shuffling follows it.
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }
  size_t index() const noexcept { return given_; }
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 protected:
  // Puts the indices of all shares into the order of this epoch.
  virtual void arrange(std::vector<size_t>& all) const = 0;
  // The examples of this rank, in order. Called by constructors of derived classes.
  void populate();

 private:
  size_t local_count() const;
  size_t size_, num_replicas_, rank_;
  bool allow_duplicates_;
  size_t epoch_ = 0;
  size_t given_ = 0;
  std::vector<size_t> mine_;
};
template <class BatchRequest = std::vector<size_t>> using DistributedSampler = DistributedShare;

class TORCH_API DistributedRandomSampler : public DistributedShare {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                           bool allow_duplicates = true);

 protected:
  void arrange(std::vector<size_t>& all) const override;
};

class TORCH_API DistributedSequentialSampler : public DistributedShare {
 public:
  DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                               bool allow_duplicates = true);

 protected:
  void arrange(std::vector<size_t>& all) const override;
};

} // namespace torch::data::samplers
