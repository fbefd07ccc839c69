// The host side of Indexing.cuh: how an indexing operator is described to its kernels, and the
// three things they do. Everything runs on the current device and stream; indices are checked by
// the kernels, which report the first bad one (c10/cuda/ErrorSlot.h) and skip it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/index/AdvancedIndex.h>
#include <ATen/native/index/Indexing.args.h>
#include <ATen/native/index/Reduction.h>

namespace at::native::cuda_index {

inline constexpr int kDims = device::kIndexDims;
using device::DualWalk;
using device::IndexOperand;
using device::IndexPlan;

// A plan without positions, for an operator of this name.
inline IndexPlan plan_for(const char* op) {
  IndexPlan plan;
  plan.check = cuda::index_check(op);
  return plan;
}
// Adds an inner dimension; strides in elements. NotImplementedError beyond kDims.
void add_dimension(DualWalk& walk, int64_t size, int64_t stride_a, int64_t stride_b);

// One index vector along `dim` of `indexed`; `linear` has the same shape but for that dimension.
IndexPlan plan_along(const char* op, const Tensor& indexed, const Tensor& linear, int64_t dim,
                     const Tensor& index, bool wraps);
// An index for every element, along `dim`: gather and scatter. All tensors have at least rank 1.
IndexPlan plan_elements(const char* op, const Tensor& indexed, const Tensor& linear, int64_t dim,
                        const Tensor& index);

// linear = indexed[places], and the other way round. Elements are moved as bytes.
void read(const IndexPlan& plan, const Tensor& indexed, const Tensor& linear);
void write(const IndexPlan& plan, const Tensor& indexed, const Tensor& linear);

struct CombineOptions {
  Reduction how = Reduction::Sum;
  bool include_self = true;
  bool by_count = false; // divide each result by the number of positions of its place
  double scale = 1.0;    // of the linear side
  int64_t skipped = -1;  // a place to leave alone
};
// indexed[place] is combined with all of the linear side's elements for it, in their order.
void combine(const IndexPlan& plan, const Tensor& indexed, const Tensor& linear,
             const CombineOptions& options, const char* op);

} // namespace at::native::cuda_index
