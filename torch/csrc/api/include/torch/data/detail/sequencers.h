// In which order results are given out: as they come, or in the order of their jobs.
#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace torch::data::detail::sequencers {

template <class Result> struct Sequencer {
  using ResultProducer = std::function<std::optional<Result>()>;
  virtual ~Sequencer() = default;
  virtual std::optional<Result> next(ResultProducer next_result) = 0;
};

template <class Result> struct NoSequencer final : public Sequencer<Result> {
  using typename Sequencer<Result>::ResultProducer;
  std::optional<Result> next(ResultProducer next_result) override { return next_result(); }
};

// Keeps results that come early. A Result has the number of its job, `sequence_number`; numbers
// under way differ by less than `max_jobs`, so the place of one is the rest of its division.
template <class Result> struct OrderedSequencer final : public Sequencer<Result> {
  using typename Sequencer<Result>::ResultProducer;
  explicit OrderedSequencer(size_t max_jobs) : buffer_(max_jobs) {}

  std::optional<Result> next(ResultProducer next_result) override {
    while (!place(next_sequence_number_)) {
      std::optional<Result> result = next_result();
      if (!result) return std::nullopt;
      const size_t number = result->sequence_number;
      place(number) = std::move(result);
    }
    return std::exchange(place(next_sequence_number_++), std::nullopt);
  }
  std::optional<Result>& place(size_t number) { return buffer_[number % buffer_.size()]; }

  size_t next_sequence_number_ = 0;
  std::vector<std::optional<Result>> buffer_;
};

} // namespace torch::data::detail::sequencers
