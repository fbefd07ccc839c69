// A call of a backend that may still be running. Any thread may wait, ask or add callbacks; the
// backend finishes it once.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>

#include <torch/csrc/distributed/c10d/Collective.h>

namespace c10d::engine {

class TORCH_API Work {
 public:
  Work(OpType type, std::vector<at::Tensor> result, std::string description = {});
  explicit Work(const Collective& call);
  virtual ~Work();

  // Returns when the work is done and throws what it failed with. `timeout` zero or negative: as
  // long as the backend lets it run.
  virtual void wait(Millis timeout);
  virtual bool is_completed();
  virtual bool is_success();
  virtual std::exception_ptr exception();
  // The rank that sent, where that was open.
  virtual int source_rank() const { return source_; }
  const std::vector<at::Tensor>& result() const { return result_; }
  OpType type() const { return type_; }
  const std::string& description() const { return description_; }
  double duration_ms();

  // Calls back when done, at once if it is so already; on the thread that finishes.
  virtual void on_done(std::function<void()> callback);

  // ---- for backends
  void finish(std::exception_ptr error = nullptr);
  void set_source_rank(int rank) { source_ = rank; }

 protected:
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::exception_ptr error_;

 private:
  const OpType type_;
  std::vector<at::Tensor> result_;
  const std::string description_;
  const uint64_t record_; // of the flight recorder
  int source_ = -1;
  std::vector<std::function<void()>> callbacks_;
  const std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point ended_;
};

} // namespace c10d::engine
