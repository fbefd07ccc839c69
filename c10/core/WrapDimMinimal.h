// Dimensions counted from the end.
#pragma once
#include <cstdint>

#include <c10/util/Exception.h>

namespace c10 {

// `dim` in 0 .. ndim-1 for a dimension that may be negative. A tensor without dimensions is taken
// for one of one dimension, unless `wrap_scalar` is false. IndexError outside of the range.
inline int64_t maybe_wrap_dim(int64_t dim, int64_t ndim, bool wrap_scalar = true) {
  const int64_t count = ndim == 0 && wrap_scalar ? 1 : ndim;
  TORCH_CHECK_INDEX(count > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  TORCH_CHECK_INDEX(-count <= dim && dim < count,
                    "Dimension out of range (expected to be in range of [", -count, ", ", count - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + count : dim;
}

} // namespace c10
