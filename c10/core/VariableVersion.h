// The counter of in-place writes of a tensor as an object: TensorImpl::version_counter().
#pragma once
#include <c10/core/TensorImpl.h>

namespace c10 {

// Shares the counter with its tensor and the views of it, and may outlive them. Inference tensors
// have no counter: asking for the version is an Error.
class VariableVersion {
 public:
  explicit VariableVersion(VersionCounter* counter)
      : counter_(intrusive_ptr<VersionCounter>::unsafe_retain(counter)) {}
  bool enabled() const { return counter_.defined(); }
  uint32_t current_version() const {
    TORCH_CHECK(enabled(), "Inference tensors do not track version counter.");
    return counter_->value.load(std::memory_order_relaxed);
  }
  void bump() {
    if (enabled()) counter_->value.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  intrusive_ptr<VersionCounter> counter_;
};

} // namespace c10
