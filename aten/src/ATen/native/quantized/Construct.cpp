// Making quantized tensors, and asking what they are made of.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/quantized/Native.h>
#include <ATen/native/quantized/Values.h>

namespace at::native {
namespace {
using namespace at::quantized;

void check_zero_point(int64_t zero_point, ScalarType dtype, const char* op) {
  const LevelType& type = level_type(dtype, op);
  TORCH_CHECK(zero_point <= type.max, op, " zero_point ", zero_point, " is above upper bound.");
  TORCH_CHECK(zero_point >= type.min, op, " zero_point ", zero_point, " is below lower bound.");
}

const Quantizer& per_channel_of(const Tensor& self, const char* op) {
  const Quantizer& q = *quantizer_of(self, op);
  TORCH_CHECK(q.per_channel(), op, ": expected a tensor that is quantized per channel");
  return q;
}
const Quantizer& per_tensor_of(const Tensor& self, const char* op) {
  const Quantizer& q = *quantizer_of(self, op);
  TORCH_CHECK(!q.per_channel(), op,
              ": Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false: the "
              "tensor is quantized per channel");
  return q;
}

MemoryFormat format_of(std::optional<MemoryFormat> format, const Tensor& like) {
  if (format && *format != MemoryFormat::Preserve) return *format;
  if (!like.defined() || !like.unsafeGetTensorImpl()->is_strides_like_channels_last())
    return MemoryFormat::Contiguous;
  return like.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}

} // namespace

Tensor quantize_per_tensor(const Tensor& self, double scale, int64_t zero_point, ScalarType dtype) {
  check_zero_point(zero_point, dtype, "quantize_tensor_per_tensor_affine");
  return quantized::quantize(self, dtype, per_tensor(scale, zero_point));
}

Tensor quantize_per_tensor_qparams(const Tensor& self, const Tensor& scale,
                                   const Tensor& zero_point, ScalarType dtype) {
  return quantize_per_tensor(self, scale.item<double>(), zero_point.item<int64_t>(), dtype);
}

std::vector<Tensor> quantize_per_tensor_list(TensorList tensors, const Tensor& scales,
                                             const Tensor& zero_points, ScalarType dtype) {
  TORCH_CHECK(scales.numel() == static_cast<int64_t>(tensors.size()) &&
                  zero_points.numel() == scales.numel(),
              "quantize_per_tensor: expected a scale and a zero point for each of ", tensors.size(),
              " tensors, got ", scales.numel(), " and ", zero_points.numel());
  const Tensor all_scales = scales.to(kDouble).contiguous();
  const Tensor all_zeros = zero_points.to(kLong).contiguous();
  std::vector<Tensor> out;
  for (size_t i = 0; i < tensors.size(); ++i)
    out.push_back(quantize_per_tensor(tensors[i], all_scales.data_ptr<double>()[i],
                                      all_zeros.data_ptr<int64_t>()[i], dtype));
  return out;
}

Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points,
                            int64_t axis, ScalarType dtype) {
  TORCH_CHECK(axis >= 0 && axis < self.dim(),
              "Channel axis out of range in per channel affine quantization. Got: ", axis,
              " Expected: [0, ", self.dim(), ")");
  QuantizerPtr quantizer = per_channel(scales, zero_points, axis);
  if (quantizer->scheme == Scheme::PerChannelAffine)
    for (int64_t i = 0; i < scales.numel(); ++i)
      check_zero_point(quantizer->zero_points.data_ptr<int64_t>()[i], dtype,
                       "quantize_tensor_per_channel_affine");
  return quantized::quantize(self, dtype, std::move(quantizer));
}

std::tuple<double, int64_t> _choose_qparams_per_tensor(const Tensor& self, bool reduce_range) {
  const auto [least, greatest] = bounds_of(self.to(kFloat));
  GridOptions options;
  options.reduce = reduce_range;
  const Grid grid = choose_grid(least, greatest, options);
  return {grid.scale, grid.zero_point};
}

Tensor quantize_per_tensor_dynamic(const Tensor& self, ScalarType dtype, bool reduce_range) {
  TORCH_CHECK(dtype == ScalarType::QInt8 || dtype == ScalarType::QUInt8 || dtype == kHalf, "dtype ",
              dtype, " not supported");
  const Tensor plain = self.contiguous();
  if (dtype == kHalf) return plain.to(kHalf);
  const auto [least, greatest] = bounds_of(plain.to(kFloat));
  const LevelType& type = level_type(dtype, "quantize_per_tensor_dynamic");
  GridOptions options;
  options.low = type.min;
  options.high = type.max;
  options.reduce = reduce_range;
  const Grid grid = choose_grid(least, greatest, options);
  return quantize_per_tensor(plain, grid.scale, grid.zero_point, dtype);
}

Tensor dequantize_plain(const Tensor& self) { return self.to(kFloat); }
Tensor dequantize_levels(const Tensor& self) { return quantized::dequantize(self); }
std::vector<Tensor> dequantize_list(TensorList tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors)
    out.push_back(t.is_quantized() ? quantized::dequantize(t) : t.to(kFloat));
  return out;
}

double q_scale(const Tensor& self) { return per_tensor_of(self, "q_scale").scale; }
int64_t q_zero_point(const Tensor& self) { return per_tensor_of(self, "q_zero_point").zero_point; }
Tensor q_per_channel_scales(const Tensor& self) {
  return per_channel_of(self, "q_per_channel_scales").scales.clone();
}
Tensor q_per_channel_zero_points(const Tensor& self) {
  return per_channel_of(self, "q_per_channel_zero_points").zero_points.clone();
}
int64_t q_per_channel_axis(const Tensor& self) {
  return per_channel_of(self, "q_per_channel_axis").axis;
}

Tensor int_repr(const Tensor& self) {
  if (level_type(self.scalar_type(), "int_repr").bits < 8) return packed_bytes(self).clone();
  return levels_of(self, "int_repr").clone();
}

Tensor _make_per_tensor_quantized_tensor(const Tensor& self, double scale, int64_t zero_point) {
  const ScalarType dtype = quantized_dtype(self.scalar_type(), "_make_per_tensor_quantized_tensor");
  return from_levels(self.clone(), dtype, per_tensor(scale, zero_point));
}
Tensor _make_per_channel_quantized_tensor(const Tensor& self, const Tensor& scale,
                                          const Tensor& zero_point, int64_t axis) {
  const ScalarType dtype =
      quantized_dtype(self.scalar_type(), "_make_per_channel_quantized_tensor");
  return from_levels(self.clone(), dtype, per_channel(scale, zero_point, axis));
}

namespace {
void check_factory(std::optional<ScalarType> dtype, std::optional<Device> device, const char* op) {
  TORCH_CHECK(dtype && is_level_type(*dtype),
              "Creation of quantized tensor requires quantized dtype like torch.quint8: ", op,
              " got ", dtype.value_or(kFloat));
  TORCH_CHECK_NOT_IMPLEMENTED(!device || device->is_cpu(), op, " is not implemented for ", *dtype,
                              " on ", device.value_or(Device(kCPU)));
}
} // namespace

Tensor _empty_affine_quantized(IntArrayRef size, std::optional<ScalarType> dtype,
                               std::optional<Layout>, std::optional<Device> device,
                               std::optional<bool>, double scale, int64_t zero_point,
                               std::optional<MemoryFormat> memory_format) {
  check_factory(dtype, device, "_empty_affine_quantized");
  return empty_levels(size, *dtype, per_tensor(scale, zero_point),
                      format_of(memory_format, Tensor()));
}
Tensor _empty_per_channel_affine_quantized(IntArrayRef size, const Tensor& scales,
                                           const Tensor& zero_points, int64_t axis,
                                           std::optional<ScalarType> dtype, std::optional<Layout>,
                                           std::optional<Device> device, std::optional<bool>,
                                           std::optional<MemoryFormat> memory_format) {
  check_factory(dtype, device, "_empty_per_channel_affine_quantized");
  return empty_levels(size, *dtype, per_channel(scales, zero_points, axis),
                      format_of(memory_format, Tensor()));
}
Tensor empty_quantized(IntArrayRef size, const Tensor& qtensor, std::optional<ScalarType> dtype,
                       std::optional<Layout>, std::optional<Device> device, std::optional<bool>,
                       std::optional<MemoryFormat> memory_format) {
  const ScalarType type = dtype.value_or(qtensor.scalar_type());
  check_factory(type, device, "empty_quantized");
  return empty_levels(size, type, quantizer_of(qtensor, "empty_quantized"),
                      format_of(memory_format, Tensor()));
}
Tensor empty_like_quantized(const Tensor& self, std::optional<ScalarType> dtype,
                            std::optional<Layout>, std::optional<Device> device,
                            std::optional<bool>, std::optional<MemoryFormat> memory_format) {
  const ScalarType type = dtype.value_or(self.scalar_type());
  check_factory(type, device, "empty_like");
  TORCH_CHECK(type == self.scalar_type(),
              "It is currently not supported to specify a dtype that doesn't match the input "
              "tensor's dtype via empty_like. Specified: ",
              type, " Input tensor's dtype: ", self.scalar_type());
  return empty_levels(self.sizes(), type, quantizer_of(self, "empty_like"),
                      format_of(memory_format, self));
}

} // namespace at::native
