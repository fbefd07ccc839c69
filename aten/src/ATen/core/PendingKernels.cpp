// See PendingKernels.h.
#include <ATen/core/PendingKernels.h>

#include <algorithm>
#include <iterator>
#include <mutex>

namespace at::detail {

namespace {
struct Pending {
  std::string name, overload;
  DispatchKey key;
  RuntimeKernel kernel;
};
struct Waiting {
  std::mutex mutex;
  std::vector<Pending> kernels;
};
// Never destroyed: libraries may be loaded while the process ends.
Waiting& waiting() {
  static auto* const all = new Waiting;
  return *all;
}
} // namespace

void keep_pending_kernel(std::string name, std::string overload, DispatchKey key,
                         RuntimeKernel kernel) {
  const std::lock_guard<std::mutex> lock(waiting().mutex);
  waiting().kernels.push_back({std::move(name), std::move(overload), key, std::move(kernel)});
}

void adopt_pending_kernels(const OperatorEntry& op) {
  std::vector<Pending> own;
  {
    const std::lock_guard<std::mutex> lock(waiting().mutex);
    std::vector<Pending>& all = waiting().kernels;
    const auto rest = std::stable_partition(all.begin(), all.end(), [&](const Pending& p) {
      return p.name != op.name || p.overload != op.overload;
    });
    std::move(rest, all.end(), std::back_inserter(own));
    all.erase(rest, all.end());
  }
  for (Pending& p : own) Dispatcher::singleton().register_kernel(&op, p.key, std::move(p.kernel));
}

std::vector<std::string> pending_kernels() {
  const std::lock_guard<std::mutex> lock(waiting().mutex);
  std::vector<std::string> out;
  for (const Pending& p : waiting().kernels)
    out.push_back(p.overload.empty() ? p.name : p.name + "." + p.overload);
  return out;
}

} // namespace at::detail
