// The geometry of a strided kernel: the common shape of up to five operands with their byte
// strides, dimensions sorted from the innermost and merged where all operands allow it. One plan
// serves pointwise operators, copies and fills.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/device/Arguments.h>

namespace at::cuda {

using device::Divider;

struct StridedPlan {
  static constexpr int kMaxOperands = 5;
  static constexpr int kMaxRank = 64;

  explicit StridedPlan(IntArrayRef shape, int operands);
  // Strides of operand k: those of a tensor broadcast to the plan's shape. An operand that is not
  // set is one value.
  void set(int k, const Tensor& tensor);
  // The same in bytes, one per dimension of the shape; may be negative.
  void set(int k, IntArrayRef byte_strides);
  // Sorts and merges the dimensions. Call once, after the operands.
  void build();

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= size[d];
    return n;
  }

  int ndim;
  int operands;
  int64_t size[kMaxRank]; // innermost first once built
  int64_t stride[kMaxRank][kMaxOperands];
};

} // namespace at::cuda
