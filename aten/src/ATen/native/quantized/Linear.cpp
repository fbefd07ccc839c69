// Linear layers with 8-bit weights. See Linear.h.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") // loops over bytes whose length is not known become vectors
#endif
#include <ATen/native/quantized/Linear.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/quantized/Values.h>
#include <ATen/parallel/Parallel.h>

namespace at::quantized {

OutputScales output_scales(const Tensor& weight, int64_t outputs, const char* op) {
  const Quantizer& q = *quantizer_of(weight, op);
  const size_t n = static_cast<size_t>(outputs);
  OutputScales out;
  if (!q.per_channel()) {
    out.scales.assign(n, static_cast<float>(q.scale));
    out.zero_points.assign(n, static_cast<int32_t>(q.zero_point));
    out.centred = q.zero_point == 0;
    return out;
  }
  TORCH_CHECK(q.scheme == Scheme::PerChannelAffine, op,
              ": weights with real zero points are not supported");
  TORCH_CHECK(q.scales.numel() == outputs, op, ": expected a scale for each of ", outputs,
              " outputs, got ", q.scales.numel());
  for (size_t i = 0; i < n; ++i) {
    out.scales.push_back(static_cast<float>(q.scales.data_ptr<double>()[i]));
    out.zero_points.push_back(static_cast<int32_t>(q.zero_points.data_ptr<int64_t>()[i]));
    out.centred = out.centred && out.zero_points.back() == 0;
  }
  return out;
}

namespace {
Tensor plain_bias(const Tensor& bias, int64_t outputs, const char* op) {
  if (!bias.defined()) return bias;
  TORCH_CHECK(bias.dim() == 1, op, ": bias should be a vector (1D Tensor)");
  TORCH_CHECK(bias.size(0) == outputs, op, ": bias should have ", outputs, " elements, but got ",
              bias.size(0));
  const Tensor values = bias.is_quantized() ? dequantize(bias) : bias;
  TORCH_CHECK(values.scalar_type() == kFloat, op, ": expected a bias of dtype float32, got ",
              values.scalar_type());
  return values.contiguous();
}
} // namespace

LinearWeight::LinearWeight(const Tensor& w, const Tensor& b) : weight(w), bias(b) {
  TORCH_CHECK(w.dim() == 2,
              "The weight tensor for quantized::linear_prepack should be "
              "2-dimensional, got ",
              w.dim(), " dimensions");
  TORCH_CHECK(w.scalar_type() == ScalarType::QInt8,
              "quantized::linear_prepack: expected a weight of dtype qint8, got ", w.scalar_type());
  scales = output_scales(w, w.size(0), "quantized::linear_prepack");
  plain_bias(b, w.size(0), "quantized::linear_prepack");
  const Tensor levels = levels_of(w, "quantized::linear_prepack");
  packed = int8::Weight(static_cast<const int8_t*>(levels.data_ptr()), levels.size(0),
                        levels.size(1), levels.stride(0), levels.stride(1));
}

Prepared::Prepared(const OutputScales& outputs, const std::vector<int32_t>& weight_sums,
                   const Tensor& bias, float scale, int64_t zero_point, int64_t k,
                   const Result& result, ScalarType dtype) {
  const size_t n = weight_sums.size();
  const int32_t zero = static_cast<int32_t>(zero_point);
  offset_.resize(n);
  scale_.resize(n);
  const float* plain = bias.defined() ? bias.data_ptr<float>() : nullptr;
  if (plain != nullptr) bias_.resize(n);
  for (size_t j = 0; j < n; ++j) {
    offset_[j] = zero * (weight_sums[j] - static_cast<int32_t>(k) * outputs.zero_points[j]);
    const float product = scale * outputs.scales[j];
    scale_[j] = result.levels ? product / static_cast<float>(result.scale) : product;
    if (plain != nullptr) bias_[j] = result.levels ? plain[j] / product : plain[j];
  }
  epilogue.offset = offset_.data();
  epilogue.weight_zero = outputs.centred ? nullptr : outputs.zero_points.data();
  epilogue.scale = scale_.data();
  epilogue.bias = plain == nullptr ? nullptr : bias_.data();
  const auto& table = int8::table();
  if (!result.levels) {
    finish = result.relu ? table.relu_values : table.values;
    return;
  }
  const LevelType& type = level_type(dtype, "quantized::linear");
  TORCH_CHECK(type.bits == 8, "a quantized product gives 8-bit levels, not ", dtype);
  TORCH_CHECK(result.zero_point >= type.min && result.zero_point <= type.max, "output zero point ",
              result.zero_point, " is not a level of ", dtype);
  epilogue.zero_point = static_cast<int32_t>(result.zero_point);
  epilogue.low = result.relu ? epilogue.zero_point : static_cast<int32_t>(type.min);
  epilogue.high = static_cast<int32_t>(type.max);
  finish = dtype == ScalarType::QUInt8 ? table.unsigned_levels : table.signed_levels;
}

namespace {

// Rows of unsigned levels, each as long as whole groups. What is behind the end of a row meets
// zeros of the weight, so that only its bytes must exist. The memory comes from where tensors have
// theirs, which is not returned to the system after each product.
struct Rows {
  Tensor owner;
  uint8_t* data;
  int64_t count, k, stride;
  Rows(int64_t count, int64_t k)
      : owner(detail::empty({count * int8::padded(k)}, kByte)),
        data(static_cast<uint8_t*>(owner.data_ptr())), count(count), k(k), stride(int8::padded(k)) {
  }
};

DimVector result_sizes(const Tensor& input, const LinearWeight& weight) {
  TORCH_CHECK(input.dim() > 0, "The dimension of input should be greater than 0");
  TORCH_CHECK(input.size(-1) == weight.packed.k(), "The number of columns of the input (",
              input.size(-1), ") must be the number of columns of the weight (", weight.packed.k(),
              ")");
  DimVector sizes(input.sizes());
  sizes.back() = weight.packed.n();
  return sizes;
}

Tensor product(const Rows& rows, const LinearWeight& weight, float scale, int64_t zero_point,
               const DimVector& sizes, const Result& result, ScalarType dtype) {
  Tensor out = result.levels
                   ? empty_levels(sizes, dtype, per_tensor(result.scale, result.zero_point))
                   : detail::empty(sizes, kFloat);
  if (out.numel() == 0) return out;
  const Tensor bias = plain_bias(weight.bias, weight.packed.n(), "quantized::linear");
  Prepared prepared(weight.scales, weight.packed.sums(), bias, scale, zero_point, rows.k, result,
                    dtype);
  std::vector<int32_t> sums;
  if (!weight.scales.centred) {
    sums.resize(static_cast<size_t>(rows.count));
    int8::table().row_sums(rows.data, rows.stride, rows.count, rows.k, sums.data());
    prepared.epilogue.row_sum = sums.data();
  }
  prepared.epilogue.out = out.data_ptr();
  prepared.epilogue.stride = weight.packed.n();
  int8::multiply(rows.data, rows.stride, rows.count, weight.packed, prepared.epilogue,
                 prepared.finish);
  return out;
}
} // namespace

Tensor linear(const Tensor& input, const LinearWeight& weight, const Result& result) {
  const Quantizer& q = *quantizer_of(input, "quantized::linear");
  const ScalarType dtype = input.scalar_type();
  TORCH_CHECK(dtype == ScalarType::QUInt8 || dtype == ScalarType::QInt8,
              "quantized::linear: expected input of dtype quint8 or qint8, got ", dtype);
  TORCH_CHECK(!q.per_channel(), "quantized::linear: the input must be quantized per tensor");
  const DimVector sizes = result_sizes(input, weight);
  const int64_t k = weight.packed.k();
  Rows rows(k == 0 ? 0 : input.numel() / k, k);
  const Tensor levels = levels_of(input, "quantized::linear").contiguous();
  const uint8_t* in = static_cast<const uint8_t*>(levels.data_ptr());
  // Signed levels become unsigned ones with a zero point that moves along.
  const bool is_signed = dtype == ScalarType::QInt8;
  const uint8_t flip = is_signed ? 0x80 : 0;
  parallel_for(0, rows.count, std::max<int64_t>(1, 65536 / std::max<int64_t>(k, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   for (int64_t j = 0; j < k; ++j)
                     rows.data[i * rows.stride + j] = in[i * k + j] ^ flip;
               });
  return product(rows, weight, static_cast<float>(q.scale), q.zero_point + (is_signed ? 128 : 0),
                 sizes, result, dtype);
}

Tensor linear_dynamic(const Tensor& input, const LinearWeight& weight, bool reduce_range,
                      bool relu) {
  TORCH_CHECK(input.scalar_type() == kFloat,
              "quantized::linear_dynamic: expected an input of dtype float32, got ",
              input.scalar_type());
  const DimVector sizes = result_sizes(input, weight);
  const int64_t k = weight.packed.k();
  if (input.numel() == 0) {
    Tensor out = detail::empty(sizes, kFloat);
    if (out.numel() > 0) out.fill_(0);
    return out;
  }
  const Tensor dense = input.contiguous();
  const auto [least, greatest] = bounds_of(dense);
  GridOptions options;
  options.reduce = reduce_range;
  const Grid grid = choose_grid(least, greatest, options);
  Rows rows(dense.numel() / k, k);
  const levels::Scaling scaling{static_cast<float>(grid.scale),
                                static_cast<float>(grid.zero_point)};
  const float* in = dense.data_ptr<float>();
  const auto quantize = levels::table().quantize[levels::kUnsigned8];
  parallel_for(0, rows.count, std::max<int64_t>(1, 32768 / k), [&](int64_t begin, int64_t end) {
    if (rows.stride == k) { // rows follow each other in both
      quantize(in + begin * k, rows.data + begin * k, (end - begin) * k, scaling);
      return;
    }
    for (int64_t i = begin; i < end; ++i)
      quantize(in + i * k, rows.data + i * rows.stride, k, scaling);
  });
  return product(rows, weight, scaling.scale, grid.zero_point, sizes, Result::values(relu),
                 ScalarType::QUInt8);
}

} // namespace at::quantized
