// The engine behind every operator that addresses whole slices through a list of positions: index,
// index_put, index_select, index_add, index_copy, index_fill, take, put, embedding. One side of the
// transfer (the indexed one) is reached through byte offsets, the other runs in order. The walk is
// compiled once; an operator brings two small loops for its element type.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {

// Dimensions that both sides share, with their byte strides; coalesced by add().
struct WalkDims {
  DimVector sizes;
  DimVector indexed;
  DimVector linear;
  int64_t numel = 1;
  // Appends a dimension inside the ones already there.
  void add(int64_t size, int64_t indexed_stride, int64_t linear_stride);
};

// The shape of a transfer: [before][count][after]. Position i lies at offsets[i] on the indexed
// side and at i * linear_stride (or linear_offsets[i] where that is given) on the linear side.
struct RowWalk {
  WalkDims before;
  WalkDims after;
  int64_t count = 0;
  const int64_t* offsets = nullptr;
  const int64_t* linear_offsets = nullptr;
  int64_t linear_stride = 0;
  int64_t itemsize = 1;
  // Different offsets mean different memory. False makes run_ordered stay on one thread.
  bool disjoint = true;
};

struct RowLoops {
  // n elements of one slice.
  void (*row)(char* indexed, char* linear, int64_t n, int64_t indexed_stride, int64_t linear_stride,
              const void* context);
  // n slices of one element each. linear_offsets may be null (then linear_stride counts).
  void (*points)(char* indexed, const int64_t* offsets, char* linear, const int64_t* linear_offsets,
                 int64_t linear_stride, int64_t n, const void* context);
};

// For loops that write the linear side: positions are independent of each other.
void run_independent(const RowWalk& walk, char* indexed, char* linear, const RowLoops& loops,
                     const void* context = nullptr);
// For loops that write the indexed side: slices with the same offset are visited in the order of
// positions whatever the number of threads, so that the last one wins and sums keep their bits.
void run_ordered(const RowWalk& walk, char* indexed, char* linear, const RowLoops& loops,
                 const void* context = nullptr);

} // namespace at::native
