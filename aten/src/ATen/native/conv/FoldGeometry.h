// The windows of im2col and col2im as the geometry of a convolution.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/conv/ConvGeometry.h>

namespace at::native {

// Windows along one dimension, rounded down; zero or negative where the kernel does not fit.
inline int64_t fold_windows(int64_t size, int64_t kernel, int64_t dilation, int64_t padding,
                            int64_t stride) {
  const __int128 room =
      __int128(size) + 2 * __int128(padding) - __int128(dilation) * (kernel - 1) - 1;
  TORCH_CHECK(room <= INT64_MAX && room >= -INT64_MAX, "the padded size does not fit in 64 bits");
  const int64_t r = static_cast<int64_t>(room);
  return (r >= 0 ? r / stride : -((-r + stride - 1) / stride)) + 1;
}

inline ConvGeometry fold_image_geometry(int64_t n, int64_t c, int64_t h, int64_t w,
                                        IntArrayRef kernel, IntArrayRef dilation,
                                        IntArrayRef padding, IntArrayRef stride) {
  const auto count = [&](int64_t size, int i) {
    return fold_windows(size, kernel[i], dilation[i], padding[i], stride[i]);
  };
  return {n,
          c,
          c,
          1,
          {1, h, w},
          {1, count(h, 0), count(w, 1)},
          {1, kernel[0], kernel[1]},
          {1, stride[0], stride[1]},
          {0, padding[0], padding[1]},
          {1, dilation[0], dilation[1]}};
}

inline ConvGeometry unfold_geometry(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation,
                                    IntArrayRef padding, IntArrayRef stride) {
  const int64_t d = self.dim();
  return fold_image_geometry(d == 4 ? self.size(0) : 1, self.size(d - 3), self.size(d - 2),
                             self.size(d - 1), kernel, dilation, padding, stride);
}

inline ConvGeometry fold_geometry(const Tensor& self, IntArrayRef size, IntArrayRef kernel,
                                  IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  const int64_t d = self.dim();
  return fold_image_geometry(d == 3 ? self.size(0) : 1, self.size(d - 2) / (kernel[0] * kernel[1]),
                             size[0], size[1], kernel, dilation, padding, stride);
}

} // namespace at::native
