// The engine behind gather and scatter: for every position of an index tensor one element of self,
// whose place along one dimension the index says, meets one element at the position itself.
// Compiled once; an operator brings one loop for its element type.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {

// n positions along one dimension: element k of self lies at
// self + k * self_stride + index[k] * dim_stride, its partner at other + k * other_stride.
// index_stride counts int64 elements, all others bytes. An index_stride of 0 with n > 1 means one
// index for the whole row.
using ScatterLoop = void (*)(char* self, const int64_t* index, char* other, int64_t n,
                             int64_t self_stride, int64_t index_stride, int64_t other_stride,
                             int64_t dim_stride, const void* context);

struct ScatterWalk {
  // self and other are as the operator has them; index is int64 and at most as large as either
  // apart from self's dim. A 0-dim tensor counts as one element along one dimension.
  ScatterWalk(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& other);

  // All indices in [0, size of dim); RuntimeError else.
  void check_indices() const;
  // The loop writes `other`: positions are independent. Each stretch of indices is checked before
  // the loop sees it, so a bad index raises the same RuntimeError, with part of `other` written.
  void run_independent_checked(ScatterLoop loop, const void* context = nullptr) const;
  // The loop writes `self`: positions that meet the same element are visited in order along dim
  // whatever the number of threads. Call check_indices first, so that nothing is written when one
  // is bad; one that turns bad meanwhile raises here.
  void run_ordered(ScatterLoop loop, const void* context = nullptr) const;

 private:
  void add(int64_t size, int64_t self_stride, int64_t index_stride, int64_t other_stride,
           bool is_dim);
  // Runs the box in which dimension `cut` is restricted to [begin, end).
  void run_box(int64_t cut, int64_t begin, int64_t end, ScatterLoop loop,
               const void* context) const;
  void run_row(char* self, const int64_t* index, char* other, int64_t n, int64_t self_stride,
               int64_t index_stride, int64_t other_stride, ScatterLoop loop,
               const void* context) const;
  void check_row(const int64_t* index, int64_t n, int64_t step) const;
  int64_t widest(bool may_be_dim) const;

  Tensor index_;
  char* self_data_;
  char* other_data_;
  const int64_t* index_data_;
  int64_t dim_; // as the user counts, for messages
  int64_t dim_size_;
  int64_t dim_stride_; // bytes
  DimVector sizes_;
  DimVector self_;
  DimVector index_strides_;
  DimVector other_;
  c10::SmallVector<bool, 8> is_dim_;
  int64_t numel_ = 0;
};

} // namespace at::native
