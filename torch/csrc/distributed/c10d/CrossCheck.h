// Whether all ranks are about to do the same: what TORCH_DISTRIBUTED_DEBUG=DETAIL asks for. Before
// an operation each rank writes what it is going to do into the store and reads what the others
// wrote. That costs several round trips per operation and works with every backend, also one that
// would crash or hang on a difference.
#pragma once
#include <torch/csrc/distributed/c10d/Collective.h>
#include <torch/csrc/distributed/c10d/Store.h>

namespace c10d::engine {

class TORCH_API CrossCheck {
 public:
  CrossCheck(std::shared_ptr<Store> store, int rank, int size);
  // Returns when all ranks have come and do the same. Throws DistBackendError that names the ranks
  // that did not come in time, or what two ranks do and in what it differs.
  void check(const Collective& call, Millis timeout);

 private:
  void await_all(const Keys& keys, const Collective& call, Millis timeout);
  const std::shared_ptr<Store> store_;
  const int rank_, size_;
  uint64_t number_ = 0;
  std::mutex mutex_;
};

} // namespace c10d::engine
