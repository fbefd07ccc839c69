// One pointwise call that qualified for the short path, ready to run: so that many of them (the
// tensors of a list) can be planned first and then run together.
#pragma once
#include <ATen/iter/Pointwise.h>

namespace at::iter {

constexpr int kMaxInputs = 4;
constexpr int kMaxParams = 4;

struct PointwiseJob {
  native::Loop1d loop;
  const void* params;
  int64_t numel;
  int count; // operands with the output
  char* data[kMaxInputs + 1];
  int64_t strides[kMaxInputs + 1];
  alignas(16) char numbers[kMaxInputs][16];
  alignas(16) char param_bytes[kMaxParams * 16];

  PointwiseJob() {} // members are written by the plan
  PointwiseJob(const PointwiseJob&) = delete;
  void run(int64_t begin, int64_t end) const {
    char* here[kMaxInputs + 1];
    for (int k = 0; k < count; ++k) here[k] = data[k] + begin * strides[k];
    loop(here, strides, end - begin, params);
  }
};

// All operands CPU tensors of one dtype and shape and contiguous; numbers, and tensors of no
// dimensions of that dtype, may stand beside them. Fills `job` and allocates `out` (functional) or
// aims at `inplace`. Returns false when the call does not qualify, having done nothing.
bool plan_pointwise(const PointwiseSpec& spec, Tensor* out, const Tensor* inplace,
                    Operands operands, Params params, PointwiseJob& job);

} // namespace at::iter
