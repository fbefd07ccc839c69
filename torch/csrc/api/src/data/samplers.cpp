// The samplers of torch::data.
#include <torch/data/samplers.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace torch::data::samplers {
namespace {

void write_number(serialize::OutputArchive& archive, const char* key, size_t value) {
  archive.write(key, torch::tensor(static_cast<int64_t>(value), torch::kInt64), true);
}
size_t read_number(serialize::InputArchive& archive, const char* key) {
  Tensor value = torch::empty({}, torch::kInt64);
  archive.read(key, value, true);
  return static_cast<size_t>(value.item<int64_t>());
}

} // namespace

// ---- in order
void SequentialSampler::reset(std::optional<size_t> new_size) {
  if (new_size) size_ = *new_size;
  index_ = 0;
}
std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  if (index_ >= size_) return std::nullopt;
  std::vector<size_t> batch(std::min(batch_size, size_ - index_));
  std::iota(batch.begin(), batch.end(), index_);
  index_ += batch.size();
  return batch;
}
void SequentialSampler::save(serialize::OutputArchive& archive) const {
  write_number(archive, "index", index_);
}
void SequentialSampler::load(serialize::InputArchive& archive) {
  index_ = read_number(archive, "index");
}

// ---- in random order
RandomSampler::RandomSampler(int64_t size, Dtype index_dtype)
    : indices_(torch::randperm(size, index_dtype)) {}

void RandomSampler::reset(std::optional<size_t> new_size) {
  const int64_t size = new_size ? static_cast<int64_t>(*new_size) : indices_.numel();
  indices_ = torch::randperm(size, indices_.options());
  index_ = 0;
}
std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  const int64_t left = indices_.numel() - index_;
  if (left <= 0) return std::nullopt;
  const int64_t count = std::min(static_cast<int64_t>(batch_size), left);
  const Tensor part = indices_.slice(0, index_, index_ + count).to(torch::kInt64).contiguous();
  index_ += count;
  const int64_t* first = part.const_data_ptr<int64_t>();
  return std::vector<size_t>(first, first + count);
}
void RandomSampler::save(serialize::OutputArchive& archive) const {
  write_number(archive, "index", index());
  archive.write("indices", indices_, true);
}
void RandomSampler::load(serialize::InputArchive& archive) {
  index_ = static_cast<int64_t>(read_number(archive, "index"));
  Tensor indices;
  archive.read("indices", indices, true);
  indices_ = indices;
}

// ---- numbers of examples
void StreamSampler::reset(std::optional<size_t> new_size) {
  if (new_size) epoch_size_ = *new_size;
  examples_retrieved_so_far_ = 0;
}
std::optional<BatchSize> StreamSampler::next(size_t batch_size) {
  if (examples_retrieved_so_far_ >= epoch_size_) return std::nullopt;
  const size_t count = std::min(batch_size, epoch_size_ - examples_retrieved_so_far_);
  examples_retrieved_so_far_ += count;
  return BatchSize(count);
}
void StreamSampler::save(serialize::OutputArchive& archive) const {
  write_number(archive, "examples_retrieved_so_far", examples_retrieved_so_far_);
}
void StreamSampler::load(serialize::InputArchive& archive) {
  examples_retrieved_so_far_ = read_number(archive, "examples_retrieved_so_far");
}

// ---- shares of a dataset
DistributedShare::DistributedShare(size_t size, size_t num_replicas, size_t rank,
                                   bool allow_duplicates)
    : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
  TORCH_CHECK(num_replicas > 0 && rank < num_replicas, "DistributedSampler: rank ", rank, " of ",
              num_replicas, " replicas does not exist");
}

size_t DistributedShare::local_count() const {
  return (size_ + (allow_duplicates_ ? num_replicas_ - 1 : 0)) / num_replicas_;
}

void DistributedShare::populate() {
  const size_t count = local_count();
  // Where the examples are too few for all shares, the first ones come twice.
  std::vector<size_t> all(count * num_replicas_);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i % size_;
  arrange(all);
  const auto first = all.begin() + static_cast<int64_t>(rank_ * count);
  mine_.assign(first, first + static_cast<int64_t>(count));
  given_ = 0;
}

void DistributedShare::reset(std::optional<size_t> new_size) {
  if (new_size) size_ = *new_size;
  populate();
}
std::optional<std::vector<size_t>> DistributedShare::next(size_t batch_size) {
  if (given_ >= mine_.size()) return std::nullopt;
  const auto first = mine_.begin() + static_cast<int64_t>(given_);
  const size_t count = std::min(batch_size, mine_.size() - given_);
  given_ += count;
  return std::vector<size_t>(first, first + static_cast<int64_t>(count));
}
void DistributedShare::save(serialize::OutputArchive& archive) const {
  write_number(archive, "sample_index_", given_);
  write_number(archive, "epoch_", epoch_);
}
void DistributedShare::load(serialize::InputArchive& archive) {
  epoch_ = read_number(archive, "epoch_");
  populate();
  given_ = read_number(archive, "sample_index_");
}

DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank,
                                                   bool allow_duplicates)
    : DistributedShare(size, num_replicas, rank, allow_duplicates) {
  populate();
}
void DistributedRandomSampler::arrange(std::vector<size_t>& all) const {
  std::mt19937 rng(static_cast<uint32_t>(epoch())); // the same on every replica
  std::shuffle(all.begin(), all.end(), rng);
}

DistributedSequentialSampler::DistributedSequentialSampler(size_t size, size_t num_replicas,
                                                           size_t rank, bool allow_duplicates)
    : DistributedShare(size, num_replicas, rank, allow_duplicates) {
  populate();
}
void DistributedSequentialSampler::arrange(std::vector<size_t>& all) const { (void)all; }

} // namespace torch::data::samplers
