// Pointwise operators over lists of tensors: planned tensor by tensor, run as one piece of work, so
// that many small tensors cost one parallel region and none pays the dispatcher.
#pragma once
#include <memory>
#include <vector>

#include <ATen/iter/Pointwise.h>
#include <ATen/iter/TensorIterator.h>

namespace at::iter {

struct PointwiseJob;

// Checks that every foreach operator makes; the texts are those programs match on.
TORCH_API void check_foreach_lists(std::initializer_list<size_t> tensors);
TORCH_API void check_foreach_scalars(size_t tensors, size_t scalars);
TORCH_API void check_foreach_number(const Tensor& scalar);
// After the call on tensor number `done`: there may be millions, so Ctrl-C is heeded in between.
TORCH_API void foreach_step(size_t done);

class TORCH_API PointwiseBatch {
 public:
  // For calls on `count` tensors; in place on `self` or, where it is empty, giving new tensors.
  PointwiseBatch(const PointwiseSpec& spec, size_t count, TensorList self = {});
  ~PointwiseBatch();
  // The call on the next tensor. What does not qualify for the short path runs at once.
  void add(Operands operands, Params params = {});
  // Runs what is pending and returns the new tensors.
  std::vector<Tensor> finish();

 private:
  bool is_entangled(size_t count) const;
  void run_pending();
  const PointwiseSpec& spec_;
  TensorList self_;
  size_t next_ = 0, pending_ = 0;
  std::unique_ptr<PointwiseJob[]> jobs_;
  std::vector<Tensor> results_;
};

} // namespace at::iter
