// Resizing of the last one to three dimensions of (batch, channel, ...) tensors by taps.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/native/interpolate/Taps.h>

#include <array>

namespace at::native::interpolate {

using Scales = std::array<std::optional<double>, 3>; // depth, height, width

// The three axes, of which the first 3 - dims are one element.
struct Specs {
  AxisSpec axis[3];
  int dims;
  int64_t planes;
};
Specs specs_of(IntArrayRef in, IntArrayRef out, int dims, Mode mode, bool align_corners,
               const Scales& scales);

// `out` has the sizes asked for; the last `dims` dimensions are resized.
void upsample(const Tensor& self, const Tensor& out, int dims, Mode mode, bool align_corners,
              const Scales& scales, const char* name);
// The transpose: `grad` has the resized sizes, `out` those of the input.
void upsample_backward(const Tensor& grad, const Tensor& out, int dims, Mode mode,
                       bool align_corners, const Scales& scales, const char* name);

// The two for tensors on CUDA.
void upsample_cuda(const Tensor& self, const Tensor& out, const Specs& specs, const char* name);
void upsample_backward_cuda(const Tensor& grad, const Tensor& out, const Specs& specs,
                            const char* name);

} // namespace at::native::interpolate
