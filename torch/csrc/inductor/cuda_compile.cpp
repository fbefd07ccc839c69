// See cuda_compile.h.
#include <torch/csrc/inductor/cuda_compile.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <set>
#include <thread>

#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/inductor/cuda_kernel.h>

namespace torch::inductor {

std::string Compilation::take_failure() {
  if (!failed_.exchange(false, std::memory_order_acq_rel)) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::move(failure_);
}

// A few threads for the whole process, started by the first kernels that need them.
class CompilerThreads {
 public:
  static CompilerThreads& get() {
    static CompilerThreads* const kept = new CompilerThreads;
    return *kept;
  }

  std::shared_ptr<Compilation> add(const std::vector<std::shared_ptr<CudaKernel>>& kernels,
                                   c10::Device device) {
    auto compilation = std::make_shared<Compilation>();
    compilation->left_ = kernels.size();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& kernel : kernels) waiting_.push_back({kernel, compilation, device});
    const size_t wanted = std::min({most(), waiting_.size() + busy_});
    for (; threads_ < wanted; ++threads_) std::thread([this] { work(); }).detach();
    changed_.notify_all();
    return compilation;
  }

  void close() {
    std::unique_lock<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  struct Job {
    std::shared_ptr<CudaKernel> kernel;
    std::shared_ptr<Compilation> compilation;
    c10::Device device;
  };
  // The program itself needs a core.
  static size_t most() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 2, 9) - 1; }

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!closing_) {
      if (waiting_.empty()) {
        changed_.wait(lock);
        continue;
      }
      Job job = std::move(waiting_.front());
      waiting_.pop_front();
      ++busy_;
      lock.unlock();
      compile(job);
      job = Job{nullptr, nullptr, c10::Device(c10::DeviceType::CPU)};
      lock.lock();
      --busy_;
      if (closing_) changed_.notify_all();
    }
  }
  static void compile(const Job& job) {
    Compilation& compilation = *job.compilation;
    try {
      const c10::cuda::CUDAGuard guard(job.device);
      job.kernel->prepare();
      compilation.left_.fetch_sub(1, std::memory_order_acq_rel);
    } catch (const std::exception& error) {
      const std::lock_guard<std::mutex> lock(compilation.mutex_);
      if (compilation.failure_.empty()) compilation.failure_ = error.what();
      compilation.failed_.store(true, std::memory_order_release);
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  size_t threads_ = 0, busy_ = 0;
  bool closing_ = false;
};

namespace {
void compile_now(const std::vector<std::shared_ptr<CudaKernel>>& kernels, c10::Device device) {
  std::atomic<size_t> next{0};
  std::exception_ptr failed;
  std::mutex mutex;
  const auto work = [&] {
    try {
      const c10::cuda::CUDAGuard guard(device);
      for (size_t i = next++; i < kernels.size(); i = next++) kernels[i]->prepare();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      failed = std::current_exception();
    }
  };
  constexpr size_t kMostThreads = 8;
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(kMostThreads, kernels.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failed) std::rethrow_exception(failed);
}
} // namespace

void stop_compiling() { CompilerThreads::get().close(); }

std::shared_ptr<Compilation>
compile_kernels(const std::vector<std::shared_ptr<CudaKernel>>& kernels, c10::Device device,
                bool in_background) {
  const c10::cuda::CUDAGuard guard(device);
  std::vector<std::shared_ptr<CudaKernel>> missing;
  std::set<std::string> texts;
  for (const auto& kernel : kernels)
    if (texts.insert(kernel->text()).second && !kernel->find()) missing.push_back(kernel);
  if (missing.empty()) return nullptr;
  if (in_background) return CompilerThreads::get().add(missing, device);
  compile_now(missing, device);
  return nullptr;
}

} // namespace torch::inductor
