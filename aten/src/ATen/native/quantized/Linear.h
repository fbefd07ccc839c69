// Products and convolutions with quantized weights: what is kept of a weight, and the functions of
// it. Activations are unsigned 8-bit levels, quantized beforehand (static) or here (dynamic).
#pragma once
#include <ATen/core/QuantizedTensor.h>
#include <ATen/native/quantized/Int8Product.h>

namespace at::quantized {

// How the result looks: float32 values, or levels of this grid with the dtype of the activations.
struct Result {
  bool levels = false;
  double scale = 1;
  int64_t zero_point = 0;
  bool relu = false;
  static Result values(bool relu) { return {false, 1, 0, relu}; }
  static Result grid(double scale, int64_t zero_point, bool relu) {
    return {true, scale, zero_point, relu};
  }
};

// The scale and zero point of each output, from the quantizer of a weight.
struct OutputScales {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  bool centred = true; // all zero points are zero
};
OutputScales output_scales(const Tensor& weight, int64_t outputs, const char* op);

struct TORCH_API LinearWeight {
  // A qint8 tensor [out, in], quantized as a whole or per output, and a float bias or none.
  LinearWeight(const Tensor& weight, const Tensor& bias);
  Tensor weight, bias;
  OutputScales scales;
  int8::Weight packed;
};

TORCH_API Tensor linear(const Tensor& input, const LinearWeight& weight, const Result& result);
// `input` is float32; its grid comes from its values.
TORCH_API Tensor linear_dynamic(const Tensor& input, const LinearWeight& weight, bool reduce_range,
                                bool relu);

struct ConvShape {
  std::vector<int64_t> stride, padding, output_padding, dilation;
  int64_t groups = 1;
  bool transposed = false;
};

struct TORCH_API ConvWeight {
  // A qint8 tensor [out, in / groups, kernel...], or [in, out / groups, ...] where transposed.
  ConvWeight(const Tensor& weight, const Tensor& bias, ConvShape shape);
  Tensor weight, bias;
  ConvShape shape;
  OutputScales scales;
  std::vector<int8::Weight> packed; // one for each group; none where transposed
  int64_t outputs() const {
    return shape.transposed ? weight.size(1) * shape.groups : weight.size(0);
  }
};

TORCH_API Tensor conv(const Tensor& input, const ConvWeight& weight, const Result& result);
TORCH_API Tensor conv_dynamic(const Tensor& input, const ConvWeight& weight, bool reduce_range);

// What a product needs of its activations and outputs, ready for Int8Product.
class Prepared {
 public:
  // `activation`: the scale and zero point of unsigned levels; `k`: the length of the sums.
  Prepared(const OutputScales& outputs, const std::vector<int32_t>& weight_sums, const Tensor& bias,
           float scale, int64_t zero_point, int64_t k, const Result& result, ScalarType dtype);
  int8::Epilogue epilogue;
  int8::Finish finish;

 private:
  std::vector<int32_t> offset_;
  std::vector<float> scale_, bias_;
};

} // namespace at::quantized
