// Datasets read in chunks (files, say) that preloader threads fetch ahead. Examples of a group of
// chunks are put in the order of a sampler and wait in one line, from whose front batches are
// taken: a batch may begin in one chunk and end in another.
#pragma once
#include <deque>
#include <exception>
#include <functional>

#include <torch/arg.h>
#include <torch/data/datasets/stateful.h>
#include <torch/data/detail/queue.h>
#include <torch/data/detail/workers.h>
#include <torch/data/samplers/random.h>
#include <torch/data/worker_exception.h>

namespace torch::data::datasets {

// Reads chunks by number; several preloaders may call read_chunk at once.
template <class ExampleType_, class ChunkType_ = std::vector<ExampleType_>> class ChunkDataReader {
 public:
  using ChunkType = ChunkType_;
  using ExampleType = ExampleType_;
  virtual ~ChunkDataReader() = default;
  virtual ChunkType read_chunk(size_t chunk_index) = 0;
  virtual size_t chunk_count() = 0;
  // At the start of an epoch.
  virtual void reset() = 0;
};

struct TORCH_API ChunkDatasetOptions {
  ChunkDatasetOptions(size_t preloader_count, size_t batch_size, size_t cache_size = 2048,
                      size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count), batch_size_(batch_size), cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    check();
  }
  // Error where a number cannot be.
  void check() const;
  TORCH_ARG(size_t, preloader_count);
  TORCH_ARG(size_t, batch_size);
  // Preloaders wait while this many examples are there.
  TORCH_ARG(size_t, cache_size) = 2048;
  // How many chunks are mixed.
  TORCH_ARG(size_t, cross_chunk_shuffle_count) = 1;
};

template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final
    : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                             typename ChunkReader::ChunkType, size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::ChunkType;
  using BatchType = std::optional<UnwrappedBatchType>;
  using BatchRequestType = size_t;
  using ExampleType = typename ChunkReader::ExampleType;

  // `preprocessing_policy` sees the examples of a group of chunks before they are ordered.
  ChunkDataset(ChunkReader chunk_reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options,
               std::function<void(UnwrappedBatchType&)> preprocessing_policy = nullptr)
      : reader_(std::move(chunk_reader)), chunk_sampler_(std::move(chunk_sampler)),
        example_sampler_(std::move(example_sampler)), options_(std::move(options)),
        policy_(std::move(preprocessing_policy)) {}
  ~ChunkDataset() override { stop(); }

  BatchType get_batch(size_t batch_size) override {
    TORCH_CHECK(batch_size == options_.batch_size(),
                "The requested batch size does not match with the initialized batch size.\n The "
                "requested batch size is ",
                batch_size, ", while the dataset is created with batch size equal to ",
                options_.batch_size());
    std::unique_lock<std::mutex> lock(mutex_);
    TORCH_CHECK(started_, "ChunkDataset: reset() must be called before get_batch()");
    changed_.wait(lock, [&] { return running_ == 0 || error_ || line_.size() >= batch_size; });
    if (error_) throw WorkerException(std::exchange(error_, nullptr));
    if (line_.empty()) return std::nullopt;
    UnwrappedBatchType batch;
    while (!line_.empty() && batch.size() < batch_size) {
      batch.push_back(std::move(line_.front()));
      line_.pop_front();
    }
    lock.unlock();
    changed_.notify_all();
    return batch;
  }
  BatchType get_batch() { return get_batch(options_.batch_size()); }

  // Starts an epoch: from the position that load() set, or the beginning.
  void reset() override {
    stop();
    reader_.reset();
    if (!std::exchange(loaded_, false)) chunk_sampler_.reset(reader_.chunk_count());
    line_.clear();
    error_ = nullptr;
    stopping_ = false;
    started_ = true;
    running_ = options_.preloader_count();
    for (size_t i = 0; i < options_.preloader_count(); ++i)
      preloaders_.start([this] { preload(); });
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  ChunkSampler& chunk_sampler() { return chunk_sampler_; }

  // The position among the chunks; examples of a chunk that was begun are not told apart.
  void save(serialize::OutputArchive& archive) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    chunk_sampler_.save(archive);
  }
  void load(serialize::InputArchive& archive) override {
    std::lock_guard<std::mutex> lock(mutex_);
    chunk_sampler_.load(archive);
    loaded_ = true;
  }

 private:
  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    preloaders_.join();
  }
  void preload() {
    try {
      while (load_group()) {
      }
    } catch (...) { // NOLINT: raised by get_batch
      std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      --running_;
    }
    changed_.notify_all();
  }
  std::optional<std::vector<size_t>> next_chunks() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return std::nullopt;
    return chunk_sampler_.next(options_.cross_chunk_shuffle_count());
  }
  // Reads one group of chunks into the line; false when there are none left.
  bool load_group() {
    const std::optional<std::vector<size_t>> chunks = next_chunks();
    if (!chunks) return false;
    UnwrappedBatchType examples;
    for (size_t chunk : *chunks)
      for (ExampleType& each : reader_.read_chunk(chunk)) examples.push_back(std::move(each));
    if (policy_) policy_(examples);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || line_.size() < options_.cache_size(); });
    if (stopping_) return false;
    example_sampler_.reset(examples.size());
    while (auto indices = example_sampler_.next(options_.batch_size()))
      for (size_t i : *indices) line_.push_back(std::move(examples[i]));
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  ChunkReader reader_;
  ChunkSampler chunk_sampler_;
  ExampleSampler example_sampler_;
  const ChunkDatasetOptions options_;
  std::function<void(UnwrappedBatchType&)> policy_;
  mutable std::mutex mutex_; // of the samplers and all below
  std::condition_variable changed_;
  std::deque<ExampleType> line_;
  std::exception_ptr error_;
  size_t running_ = 0;
  bool started_ = false;
  bool stopping_ = false;
  bool loaded_ = false;
  data::detail::Workers preloaders_;
};

} // namespace torch::data::datasets
