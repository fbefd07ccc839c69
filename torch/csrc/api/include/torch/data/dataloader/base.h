// What data loaders share: batches fetched by the caller, or by workers ahead of time. A derived
// class says what the next request is. Each worker has a copy of the dataset; a
// SharedBatchDataset is one for all. One thread iterates.
#pragma once
#include <exception>
#include <memory>
#include <type_traits>

#include <torch/data/dataloader_options.h>
#include <torch/data/detail/data_shuttle.h>
#include <torch/data/detail/sequencers.h>
#include <torch/data/detail/workers.h>
#include <torch/data/iterator.h>
#include <torch/data/worker_exception.h>

namespace torch::data {

template <class Dataset, class Batch, class BatchRequest> class DataLoaderBase {
 public:
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;

  DataLoaderBase(DataLoaderOptions options, Dataset dataset)
      : options_(options), dataset_(std::move(dataset)) {
    if (options_.workers == 0) return;
    TORCH_CHECK(options_.max_jobs > 0, "DataLoader: max_jobs is 0, workers would have no work");
    if constexpr (std::is_copy_constructible_v<Dataset>) {
      for (size_t i = 0; i < options_.workers; ++i)
        workers_.start([this, copy = std::make_shared<Dataset>(dataset_)] { serve(*copy); });
    } else {
      TORCH_CHECK(false, "DataLoader: workers need copies of the dataset, which cannot be copied; "
                         "use make_shared_dataset");
    }
  }
  virtual ~DataLoaderBase() { join(); }

  // Starts a new epoch. With workers, the one before must be over.
  Iterator<Batch> begin() {
    TORCH_CHECK(shuttle_.in_flight_jobs() == 0,
                "Attempted to get a new DataLoader iterator while another iterator is not yet "
                "exhausted");
    exhausted_ = false;
    next_number_ = 0;
    if (options_.enforce_ordering && options_.workers > 0)
      sequencer_ =
          std::make_unique<detail::sequencers::OrderedSequencer<Result>>(options_.max_jobs);
    else
      sequencer_ = std::make_unique<detail::sequencers::NoSequencer<Result>>();
    reset();
    return Iterator<Batch>([this] { return next(); });
  }
  Iterator<Batch> end() { return {}; }
  // Ends the workers; batches that were not asked for yet are lost.
  void join() {
    if (workers_.empty()) return;
    shuttle_.drain();
    for (size_t i = 0; i < options_.workers; ++i) shuttle_.push_job(Job{});
    workers_.join();
  }
  const FullDataLoaderOptions& options() const noexcept { return options_; }

 protected:
  // The start of an epoch; derived classes reset what requests come from, then call this.
  virtual void reset() {
    while (shuttle_.in_flight_jobs() < options_.max_jobs && push_next()) {
    }
  }
  // What to fetch next; nothing when the epoch is over.
  virtual std::optional<BatchRequest> next_request() = 0;
  Dataset& main_dataset() { return dataset_; }

 private:
  struct Job {
    std::optional<BatchRequest> request; // none: the worker ends
    size_t sequence_number = 0;
  };
  struct Result {
    std::optional<Batch> batch;
    std::exception_ptr error;
    size_t sequence_number = 0;
  };

  static std::optional<Batch> fetch(Dataset& dataset, BatchRequest request) {
    return dataset.get_batch(std::move(request));
  }
  void serve(Dataset& dataset) {
    while (true) {
      Job job = shuttle_.pop_job();
      if (!job.request) return;
      Result result{std::nullopt, nullptr, job.sequence_number};
      try {
        result.batch = fetch(dataset, std::move(*job.request));
      } catch (...) { // NOLINT: raised where the batch is asked for
        result.error = std::current_exception();
      }
      shuttle_.push_result(std::move(result));
    }
  }
  bool push_next() {
    if (exhausted_ || options_.workers == 0) return false;
    std::optional<BatchRequest> request = next_request();
    if (!request) {
      exhausted_ = true;
      return false;
    }
    shuttle_.push_job({std::move(request), next_number_++});
    return true;
  }
  std::optional<Batch> next() {
    if (options_.workers == 0) {
      std::optional<BatchRequest> request = next_request();
      if (!request) return std::nullopt;
      return fetch(dataset_, std::move(*request));
    }
    while (true) {
      std::optional<Result> result =
          sequencer_->next([this] { return shuttle_.pop_result(options_.timeout); });
      if (!result) return std::nullopt;
      if (result->error) throw WorkerException(result->error);
      if (result->batch) {
        push_next();
        return std::move(result->batch);
      }
      // A stateful dataset has no more. Other workers may still bring what they got before.
      exhausted_ = true;
    }
  }

  const FullDataLoaderOptions options_;
  Dataset dataset_;
  detail::DataShuttle<Job, Result> shuttle_;
  std::unique_ptr<detail::sequencers::Sequencer<Result>> sequencer_;
  size_t next_number_ = 0;
  bool exhausted_ = false;
  detail::Workers workers_;
};

} // namespace torch::data
