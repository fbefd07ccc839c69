// Jobs on their way to workers and results on their way back, with a count of what is under way.
#pragma once
#include <torch/data/detail/queue.h>

namespace torch::data::detail {

template <class Job, class Result> class DataShuttle {
 public:
  void push_job(Job job) {
    ++in_flight_;
    jobs_.push(std::move(job));
  }
  // By workers.
  Job pop_job() { return jobs_.pop(); }
  void push_result(Result result) { results_.push(std::move(result)); }
  // Nothing where no job is under way.
  std::optional<Result>
  pop_result(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    if (in_flight_ == 0) return std::nullopt;
    Result result = results_.pop(timeout);
    --in_flight_;
    return result;
  }
  // Drops jobs that no worker has taken, waits for the others and drops their results.
  void drain() {
    in_flight_ -= jobs_.clear();
    while (in_flight_ > 0) pop_result();
  }
  size_t in_flight_jobs() const noexcept { return in_flight_; }

 private:
  Queue<Job> jobs_;
  Queue<Result> results_;
  size_t in_flight_ = 0; // of the thread that pushes jobs and pops results
};

} // namespace torch::data::detail
