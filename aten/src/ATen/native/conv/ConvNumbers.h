// The numbers of one convolution, for kernels of both devices. Every convolution is brought to
// three spatial dimensions (missing ones of size 1), and a transposed convolution is described by
// the plain convolution whose input gradient it computes, so that the kernels know one form.
#pragma once
#include <cstddef>
#include <cstdint>

#include <c10/macros/Macros.h>

namespace at::native {

struct ConvGeometry {
  int64_t n, c, o, groups; // batch, channels of the large and of the small side
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  CRESSET_HD int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  CRESSET_HD int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  CRESSET_HD int64_t kernel_volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  CRESSET_HD int64_t c_per_group() const { return c / groups; }
  CRESSET_HD int64_t o_per_group() const { return o / groups; }
  // A product with the input as it lies in memory.
  bool is_pointwise() const {
    for (int i = 0; i < 3; ++i)
      if (kernel[i] != 1 || stride[i] != 1 || padding[i] != 0) return false;
    return true;
  }
  bool is_depthwise() const { return c == groups && groups > 1; }
};
// Passed to device programs byte by byte. The run-time compiler cannot ask for an offset.
static_assert(sizeof(ConvGeometry) == 22 * 8);
#if !defined(__CUDACC_RTC__)
static_assert(offsetof(ConvGeometry, in) == 4 * 8 && offsetof(ConvGeometry, dilation) == 19 * 8);
#endif

} // namespace at::native
