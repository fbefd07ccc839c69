// The iterator of a data loader. It goes forward only; copies share their position. A batch is
// fetched when it is first asked for, so that errors of workers appear at the dereference.
#pragma once
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include <c10/util/Exception.h>

namespace torch::data {

template <class Batch> class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;

  // Past the end.
  Iterator() = default;
  // `next` gives batches until there are none.
  explicit Iterator(std::function<std::optional<Batch>()> next)
      : state_(std::make_shared<State>()) {
    state_->next = std::move(next);
  }

  Iterator& operator++() {
    TORCH_CHECK(state_, "Incrementing the DataLoader's past-the-end iterator is not allowed");
    TORCH_CHECK(!state_->at_end(), "Attempted to increment iterator past the end");
    state_->fetched = false;
    return *this;
  }
  Batch& operator*() {
    TORCH_CHECK(state_, "Dereferencing the DataLoader's past-the-end iterator is not allowed");
    TORCH_CHECK(!state_->at_end(), "Attempted to dereference iterator that was past the end");
    return *state_->batch;
  }
  Batch* operator->() { return &**this; }
  bool operator==(const Iterator& other) const {
    if (state_ == other.state_) return true;
    // Two iterations differ; one is past the end when it has no more batches.
    if (state_ && other.state_) return false;
    return state_ ? state_->at_end() : other.state_->at_end();
  }
  bool operator!=(const Iterator& other) const { return !(*this == other); }

 private:
  struct State {
    bool at_end() {
      if (!fetched) {
        batch = next();
        fetched = true;
      }
      return !batch.has_value();
    }
    std::function<std::optional<Batch>()> next;
    std::optional<Batch> batch;
    bool fetched = false;
  };
  std::shared_ptr<State> state_;
};

} // namespace torch::data
