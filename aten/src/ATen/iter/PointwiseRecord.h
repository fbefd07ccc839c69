// What a pointwise operator would run, without running it: for compilers that put several of them
// into one kernel. While a recorder is set on the thread, a pointwise call on the meta device also
// leaves the loop, dtypes and numbers that the same call on the CPU uses. The decision is made by
// the functions that make it for eager calls, so the two cannot differ.
#pragma once
#include <array>
#include <vector>

#include <ATen/iter/PointwiseJob.h>

namespace at::iter {

struct PointwiseRecord {
  const PointwiseSpec* spec;
  Tensor target;
  ScalarType compute;  // of the inputs as the loop reads them
  ScalarType produced; // of the output as the loop writes it; the target may have another
  native::Loop1d loop;
  std::vector<Tensor> operands; // undefined where the input is a number
  std::array<std::array<char, 16>, kMaxInputs> numbers;
  std::array<char, kMaxParams * 16> params;
};

// Collects the calls of its thread for as long as it lives.
class TORCH_API PointwiseRecorder {
 public:
  PointwiseRecorder();
  ~PointwiseRecorder();
  PointwiseRecorder(const PointwiseRecorder&) = delete;
  PointwiseRecorder& operator=(const PointwiseRecorder&) = delete;
  std::vector<PointwiseRecord> calls;

 private:
  PointwiseRecorder* outer_;
};

} // namespace at::iter
