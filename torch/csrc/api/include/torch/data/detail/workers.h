// Threads of a data loader or dataset.
#pragma once
#include <functional>
#include <memory>

#include <c10/macros/Macros.h>

namespace torch::data::detail {

class TORCH_API Workers {
 public:
  Workers();
  // Waits for the threads: whoever owns them has told them to end.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // `run` must not throw.
  void start(std::function<void()> run);
  void join();
  bool empty() const;

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

} // namespace torch::data::detail
