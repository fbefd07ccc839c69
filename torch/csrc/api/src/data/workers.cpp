// Worker threads of torch::data and what they throw.
#include <torch/data/detail/workers.h>
#include <torch/data/worker_exception.h>

#include <thread>
#include <vector>

namespace torch::data {

WorkerException::WorkerException(std::exception_ptr original)
    : message("Caught exception in DataLoader worker thread."), original_exception(original) {
  try {
    std::rethrow_exception(original);
  } catch (const std::exception& error) {
    message += std::string(" Original message: ") + error.what();
  } catch (...) { // NOLINT: what it was stays in original_exception
  }
}

namespace detail {

struct Workers::Threads {
  std::vector<std::thread> all;
};
Workers::Workers() : threads_(std::make_unique<Threads>()) {}
Workers::~Workers() { join(); }
void Workers::start(std::function<void()> run) { threads_->all.emplace_back(std::move(run)); }
void Workers::join() {
  for (std::thread& each : threads_->all)
    if (each.joinable()) each.join();
  threads_->all.clear();
}
bool Workers::empty() const { return threads_->all.empty(); }

} // namespace detail
} // namespace torch::data
