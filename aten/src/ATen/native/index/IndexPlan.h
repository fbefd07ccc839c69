// The host side of Indexing.cuh: how an indexing operator is described to its kernels, and the
// three things they do. Everything runs on the current device and stream; indices are checked by
// the kernels, which report the first bad one (c10/cuda/ErrorSlot.h) and skip it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/index/AdvancedIndex.h>
#include <ATen/native/index/Reduction.h>

namespace at::native::cuda_index {

inline constexpr int kDims = 8;

// Mirrors of the structures in Indexing.cuh.
struct DualWalk {
  int64_t count = 1;
  int32_t ndim = 0;
  int32_t unused = 0;
  int64_t sizes[kDims] = {}, a[kDims] = {}, b[kDims] = {};
  // Adds an inner dimension; strides in elements. NotImplementedError beyond kDims.
  void add(int64_t size, int64_t stride_a, int64_t stride_b);
};

struct IndexOperand {
  const void* data = nullptr;
  int64_t strides[kDims] = {};
  int64_t bound = 0, stride = 0;
  int32_t dim = 0;
  int32_t narrow = 0;
};

struct IndexPlan {
  explicit IndexPlan(const char* op) : check(op) {}
  DualWalk positions, slices;
  int32_t indices = 0;
  int32_t wraps = 0;
  IndexOperand index[kDims];
  cuda::IndexCheck check;
};

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
