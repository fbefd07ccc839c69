// Machine code for the kernels of a plan on CUDA: found on disk, or made by threads beside the
// program. Until all of it is there the plan's operators run one by one, which gives the same bits:
// the first call of a compiled function does not wait for a compiler.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/macros/Export.h>

namespace torch::inductor {

class CudaKernel;

class Compilation {
 public:
  bool is_done() const { return left() == 0; }
  // Kernels that are not there.
  size_t left() const { return left_.load(std::memory_order_acquire); }
  // Why a kernel cannot be compiled, once; empty afterwards and while nothing failed.
  std::string take_failure();

 private:
  friend class CompilerThreads;
  std::atomic<size_t> left_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::string failure_; // guarded by mutex_
};

// Compiles what is not at hand. In the background: returns at once, null where nothing is missing.
// Else waits, returns null and throws what a compiler says.
std::shared_ptr<Compilation>
compile_kernels(const std::vector<std::shared_ptr<CudaKernel>>& kernels, c10::Device device,
                bool in_background);
// For the end of the program: the threads finish the kernel at hand, since the compiler's library
// goes away with the process, and leave the rest.
TORCH_API void stop_compiling();

} // namespace torch::inductor
