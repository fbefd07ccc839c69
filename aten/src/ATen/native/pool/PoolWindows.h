// The windows of a pooling, per dimension. Fixed and adaptive pooling differ only in where windows
// begin and end, so that once these are listed one loop computes every maximum and one every mean.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace at::native {

struct PoolWindows {
  // Window o of dimension d takes elements lo[d][o], lo + step[d], ... below hi[d][o]; `full`
  // counts the elements with the padding. Two-dimensional pooling has one window of one element in
  // dimension 0.
  std::vector<int64_t> lo[3], hi[3], full[3];
  int64_t step[3] = {1, 1, 1};
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t planes = 0;

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
};

// Parameters with one value per dimension; stride empty: the kernel size.
struct PoolParams {
  DimVector kernel, stride, padding, dilation;
  bool ceil_mode = false;
};
// Expands and checks; the messages name `op`.
PoolParams pool_params(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                       IntArrayRef dilation, bool ceil_mode, size_t dims, const char* op);
// The output's sizes; checks the input's.
DimVector pool_output_size(IntArrayRef input, const PoolParams& params, const char* op,
                           bool is_max);
DimVector adaptive_output_size(IntArrayRef input, IntArrayRef output_size, const char* op);
// `input` and `output` as the two above accept and answer them.
PoolWindows fixed_windows(IntArrayRef input, IntArrayRef output, const PoolParams& params);
PoolWindows adaptive_windows(IntArrayRef input, IntArrayRef output, size_t dims);

} // namespace at::native
