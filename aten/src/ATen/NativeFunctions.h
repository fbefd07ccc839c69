// The operators under at::native::, where programs name a kernel. Kernels themselves are not
// public: a call goes through the dispatcher.
#pragma once
#include <ATen/Functions.h>

namespace at::native {
using namespace ::at; // NOLINT: that at::native:: offers what at:: has is the interface

inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }

// By scale factors: of the operator's overloads the one whose kernel has this name.
inline Tensor _upsample_nearest_exact2d(const Tensor& input, OptionalIntArrayRef output_size,
                                        std::optional<ArrayRef<double>> scale_factors) {
  return at::_upsample_nearest_exact2d(input, output_size, scale_factors);
}
inline Tensor _upsample_bilinear2d_aa(const Tensor& input, OptionalIntArrayRef output_size,
                                      bool align_corners,
                                      std::optional<ArrayRef<double>> scale_factors) {
  return at::_upsample_bilinear2d_aa(input, output_size, align_corners, scale_factors);
}
inline Tensor _upsample_bicubic2d_aa(const Tensor& input, OptionalIntArrayRef output_size,
                                     bool align_corners,
                                     std::optional<ArrayRef<double>> scale_factors) {
  return at::_upsample_bicubic2d_aa(input, output_size, align_corners, scale_factors);
}

} // namespace at::native
