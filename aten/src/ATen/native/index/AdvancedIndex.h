// What self[indices] means: masks become positions, index tensors are broadcast together, and the
// result's shape and strides follow. Shared by index, index_put and their gradients' relatives;
// reads index values only to expand masks and to compute offsets.
#pragma once
#include <ATen/native/index/IndexUtil.h>

namespace at::native {

struct AdvancedIndex {
  // self, with the indexed dimensions next to each other (in front when they were not).
  Tensor self;
  int64_t first = 0; // the first indexed dimension
  // One int64 or int32 tensor per indexed dimension.
  c10::SmallVector<Tensor, 4> indices;
  DimVector shape; // of the index tensors together

  // Errors (IndexError) for wrong dtypes, masks of another shape, too many indices, shapes that do
  // not broadcast. Masks need real data.
  AdvancedIndex(const Tensor& self, OptionalTensorList indices);

  DimVector result_sizes() const;
  // Dense, in the order of memory of self and of the index tensors, as PyTorch lays results out.
  // Empty when that is row-major.
  DimVector result_strides(IntArrayRef sizes) const;
  // Checked byte offsets into self of all positions.
  void offsets(Offsets& out) const;
  // The walk between self and a tensor of the result's shape; needs the offsets. linear_offsets
  // receives the other side's offsets where these have no single stride.
  RowWalk walk(const Tensor& linear, const Offsets& offsets, Offsets& linear_offsets) const;
};

// An uninitialised result of the plan.
Tensor allocate_result(const AdvancedIndex& plan);
// `values` as it stands against the result's shape: leading dimensions of 1 dropped, the rest
// broadcast.
Tensor fit_values(const Tensor& values, IntArrayRef sizes);
// The checks of index_put_ that need no index values: devices, overlap. Those of the dtypes come
// after the indices are known to be good.
void check_put(const Tensor& self, const Tensor& values, OptionalTensorList indices);
void check_put_dtypes(const Tensor& self, const Tensor& values);

// The values of an index_put_: those given, but with one mask as the only index a single value is a
// number, which takes the dtype of self.
Tensor put_source(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                  bool accumulate);

// The mask when `indices` is a single boolean mask over all of self, else null.
const Tensor* full_mask(const Tensor& self, OptionalTensorList indices);

// Checks that a mask fits dimensions of self from `dim` on.
void check_mask_shape(const Tensor& self, const Tensor& mask, int64_t dim);

} // namespace at::native
