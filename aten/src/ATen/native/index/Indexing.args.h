// The arguments of Indexing.cuh: a set of positions, for each of which index tensors name a place.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

inline constexpr int kIndexDims = 8;

// Offsets of a running number in two tensors of the same shape.
struct DualWalk {
  int64_t count = 1;
  int32_t ndim = 0;
  int32_t unused = 0;
  int64_t sizes[kIndexDims] = {}, a[kIndexDims] = {}, b[kIndexDims] = {};

  struct Offsets {
    int64_t a, b;
  };
#if defined(CRESSET_DEVICE)
  CRESSET_DEVICE_FN Offsets offsets(int64_t i) const;
  // Out of line: kernels ask many times, and it is long.
  __device__ __noinline__ Offsets offsets_of_several(int64_t i) const;
#endif
};
CRESSET_LAYOUT(DualWalk, 208, b, 144);

struct IndexOperand {
  const void* data = nullptr;
  int64_t strides[kIndexDims] = {}; // along the dimensions of the positions
  int64_t bound = 0, stride = 0;    // of the indexed dimension
  int32_t dim = 0;                  // as messages name it
  int32_t narrow = 0;               // int32 instead of int64
};
CRESSET_LAYOUT(IndexOperand, 96, narrow, 92);

struct IndexPlan {
  DualWalk positions, slices;
  int32_t indices = 0;
  int32_t wraps = 0; // negative indices count from the end
  IndexOperand index[kIndexDims];
  IndexCheck check;
#if defined(CRESSET_DEVICE)
  // The places of position p in the indexed tensor, -1 where an index is out of range, and in the
  // other one.
  CRESSET_DEVICE_FN DualWalk::Offsets place(int64_t p) const;
  // The same of the i-th element of all slices.
  CRESSET_DEVICE_FN DualWalk::Offsets element(int64_t i) const;
#endif
};
CRESSET_LAYOUT(IndexPlan, 1208, check, 1192);

} // namespace at::device
