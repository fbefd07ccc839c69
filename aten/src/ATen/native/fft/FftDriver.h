// Transforms along one dimension of strided data; see FftDriver.cpp for how the work is cut.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native::fft {

enum class Kind { C2C, R2C, C2R };

// Transforms every line of `in` along `dim` into `out`; both have the same sizes except along `dim`
// and either is complex or real as the kind says (float or double in both). n is the length of the
// transform: of the real lines where there are any, n / 2 + 1 being that of their spectra. `out`
// may be `in`. The result is multiplied by scale.
void transform_dim(Kind kind, const Tensor& in, const Tensor& out, int64_t dim, int64_t n,
                   bool inverse, double scale);

// Fills the half of `out` that a transform of real data along the last of `dims` leaves to
// symmetry: element k is the conjugate of element -k.
void fill_symmetric(const Tensor& out, IntArrayRef dims);

} // namespace at::native::fft
