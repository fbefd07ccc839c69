// Whole tensors between values and levels, and the choice of a scale from a range of values. Other
// kernels of quantized tensors are written with these.
#pragma once
#include <ATen/core/QuantizedTensor.h>
#include <ATen/native/quantized/Levels.h>

namespace at::quantized {

// Of a dtype with bytes of its own; Error naming `op` otherwise.
levels::Kind kind_of(ScalarType dtype, const char* op);

// float32 values rounded to the grid of the quantizer. The result has the order of memory of
// `values` where that is dense.
TORCH_API Tensor quantize(const Tensor& values, ScalarType dtype, QuantizerPtr quantizer);
// The float32 values of a quantized tensor.
TORCH_API Tensor dequantize(const Tensor& self);
// Rounds values into a quantized tensor that exists, of the same size.
TORCH_API void quantize_into(const Tensor& self, const Tensor& values);

struct Grid {
  double scale;
  int64_t zero_point;
};
// The grid of levels [low, high] that covers [least, greatest] and zero. `reduce` leaves the
// highest bit of the levels unused, `symmetric` centres the grid at zero.
struct GridOptions {
  int64_t low = 0, high = 255;
  bool reduce = false;
  bool symmetric = false;
};
TORCH_API Grid choose_grid(float least, float greatest, const GridOptions& options);
// The bounds of a float32 tensor; Error for one without elements.
TORCH_API std::pair<float, float> bounds_of(const Tensor& values);

} // namespace at::quantized
