// How a data loader makes batches.
#pragma once
#include <chrono>
#include <optional>

#include <c10/util/Exception.h>
#include <torch/arg.h>

namespace torch::data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  /* implicit */ DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}

  TORCH_ARG(size_t, batch_size) = 1;
  // Threads that fetch batches; none means that the caller does it.
  TORCH_ARG(size_t, workers) = 0;
  // How many batches may be under way; twice the workers where it is not said.
  TORCH_ARG(std::optional<size_t>, max_jobs);
  // How long to wait for a batch before Error.
  TORCH_ARG(std::optional<std::chrono::milliseconds>, timeout);
  // Batches in the order in which they were asked for.
  TORCH_ARG(bool, enforce_ordering) = true;
  // Leaves out a last batch that is too small.
  TORCH_ARG(bool, drop_last) = false;
};

// The same with nothing left open.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(DataLoaderOptions options)
      : batch_size(options.batch_size()), workers(options.workers()),
        max_jobs(options.max_jobs().value_or(2 * workers)), timeout(options.timeout()),
        enforce_ordering(options.enforce_ordering()), drop_last(options.drop_last()) {
    TORCH_CHECK(batch_size > 0, "DataLoaderOptions: batch_size must be positive, got 0");
  }

  size_t batch_size;
  size_t workers;
  size_t max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering;
  bool drop_last;
};

} // namespace torch::data
