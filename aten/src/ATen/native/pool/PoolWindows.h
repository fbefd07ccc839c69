// The windows of a pooling, per dimension. Fixed and adaptive pooling differ only in where windows
// begin and end, so that one loop computes every maximum and one every mean.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace at::native {

// Elements lo, lo + step, ... below hi of one dimension; `full` counts them with the padding.
struct PoolWindow {
  int64_t lo, hi, full;
};

// Windows are listed where there are few, and computed when asked for where a list would be as
// large as the result.
class PoolAxis {
 public:
  int64_t in = 1, out = 1, step = 1;

  PoolAxis() : PoolAxis(1, 1) {}
  // Adaptive: windows share the input as evenly as whole numbers allow.
  PoolAxis(int64_t in, int64_t out);
  PoolAxis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
           int64_t dilation);

  PoolWindow window(int64_t o) const {
    return listed_.empty() ? computed(o) : listed_[static_cast<size_t>(o)];
  }
  // An upper bound of the elements of a window.
  int64_t most() const;
  // Windows [first, last) are equal but for their place: `stride` apart, `span` from lo to hi.
  struct Equal {
    int64_t first = 0, last = 0, stride = 1, span = 0;
  };
  Equal equal() const;

 private:
  void list();
  PoolWindow computed(int64_t o) const;

  int64_t kernel_ = 0, stride_ = 0, padding_ = 0; // no kernel: adaptive
  std::vector<PoolWindow> listed_;
};

struct PoolWindows {
  // Two-dimensional pooling has one window of one element in dimension 0.
  PoolAxis axis[3];
  int64_t planes = 0;

  int64_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_plane() const { return axis[0].out * axis[1].out * axis[2].out; }
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
// The maxima alone, of a contiguous tensor in the CPU's memory: `max_pool{2,3}d` of one that nobody
// differentiates.
Tensor max_pool_values(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                       IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, size_t dims,
                       const char* name);

} // namespace at::native
