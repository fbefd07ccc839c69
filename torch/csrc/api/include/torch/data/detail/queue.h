// A queue between threads.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include <c10/util/Exception.h>

namespace torch::data::detail {

template <class T> class Queue {
 public:
  void push(T value) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      values_.push_back(std::move(value));
    }
    pushed_.notify_one();
  }
  // The oldest value, waited for no longer than `timeout` where one is given: then Error.
  T pop(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto ready = [this] { return !values_.empty(); };
    if (!timeout)
      pushed_.wait(lock, ready);
    else
      TORCH_CHECK(pushed_.wait_for(lock, *timeout, ready),
                  "Timeout in DataLoader queue while waiting for next batch (timeout was ",
                  int64_t(timeout->count()), " ms)");
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  // Empties the queue and returns how many values it had.
  size_t clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    const size_t count = values_.size();
    values_.clear();
    return count;
  }

 private:
  std::deque<T> values_;
  std::mutex mutex_;
  std::condition_variable pushed_;
};

} // namespace torch::data::detail
