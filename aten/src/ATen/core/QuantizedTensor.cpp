// The object behind quantized tensors and its constructors. See QuantizedTensor.h.
#include <ATen/core/QuantizedTensor.h>

#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <c10/util/SafeArithmetic.h>

namespace at::quantized {
namespace {

DispatchKeySet keys_for(Device device) {
  TORCH_CHECK_NOT_IMPLEMENTED(device.is_cpu(), "quantized tensors are not implemented on ", device);
  return DispatchKeySet(DispatchKey::QuantizedCPU);
}

const LevelType* find_level_type(ScalarType dtype) {
  static constexpr LevelType kQInt8{8, -128, 127, ScalarType::Char};
  static constexpr LevelType kQUInt8{8, 0, 255, ScalarType::Byte};
  static constexpr LevelType kQInt32{32, std::numeric_limits<int32_t>::min(),
                                     std::numeric_limits<int32_t>::max(), ScalarType::Int};
  static constexpr LevelType kQUInt4{4, 0, 15, ScalarType::Byte};
  static constexpr LevelType kQUInt2{2, 0, 3, ScalarType::Byte};
  switch (dtype) {
  case ScalarType::QInt8:
    return &kQInt8;
  case ScalarType::QUInt8:
    return &kQUInt8;
  case ScalarType::QInt32:
    return &kQInt32;
  case ScalarType::QUInt4x2:
    return &kQUInt4;
  case ScalarType::QUInt2x4:
    return &kQUInt2;
  default:
    return nullptr;
  }
}

void check_channels(const Quantizer& q, IntArrayRef sizes) {
  if (!q.per_channel()) return;
  const int64_t rank = static_cast<int64_t>(sizes.size());
  TORCH_CHECK(q.axis >= 0 && q.axis < rank,
              "Channel axis out of range in per channel affine "
              "quantization. Got: ",
              q.axis, " Expected: [0, ", rank, ")");
  TORCH_CHECK(q.scales.numel() == sizes[static_cast<size_t>(q.axis)],
              "length of scales must equal to channel, expected ",
              sizes[static_cast<size_t>(q.axis)], " got, ", q.scales.numel());
}

} // namespace

QuantizedTensorImpl::QuantizedTensorImpl(Storage storage, ScalarType dtype, Device device,
                                         QuantizerPtr quantizer)
    : TensorImpl(std::move(storage), keys_for(device), dtype, device),
      quantizer_(std::move(quantizer)) {}

void QuantizedTensorImpl::copy_metadata_from(const TensorImpl& from) {
  const auto* other = dynamic_cast<const QuantizedTensorImpl*>(&from);
  TORCH_CHECK(other != nullptr, "a quantized tensor cannot take the contents of a tensor of dtype ",
              from.dtype());
  TensorImpl::copy_metadata_from(from);
  quantizer_ = other->quantizer_;
}

c10::intrusive_ptr<c10::TensorImpl> QuantizedTensorImpl::shallow_copy() const {
  auto out = c10::make_intrusive<QuantizedTensorImpl>(Storage(), dtype(), device(), quantizer_);
  out->copy_metadata_from(*this);
  return out;
}

void QuantizedTensorImpl::release_resources() {
  TensorImpl::release_resources();
  quantizer_.reset();
}

bool is_level_type(ScalarType dtype) { return find_level_type(dtype) != nullptr; }

const LevelType& level_type(ScalarType dtype, const char* op) {
  const LevelType* found = find_level_type(dtype);
  TORCH_CHECK(found != nullptr, op,
              ": creation of quantized tensor requires quantized dtype like torch.quint8, got ",
              dtype);
  return *found;
}

int64_t level_bytes(int64_t numel, ScalarType dtype) {
  const int bits = level_type(dtype, "level_bytes").bits;
  int64_t bytes = 0;
  if (bits < 8) return numel / (8 / bits) + (numel % (8 / bits) != 0);
  TORCH_CHECK(!c10::mul_overflows(numel, static_cast<int64_t>(bits / 8), &bytes),
              "a quantized tensor of ", numel, " elements is too large");
  return bytes;
}

QuantizerPtr per_tensor(double scale, int64_t zero_point) {
  auto made = std::make_shared<Quantizer>();
  made->scale = scale;
  made->zero_point = zero_point;
  return made;
}

QuantizerPtr per_channel(const Tensor& scales, const Tensor& zero_points, int64_t axis) {
  TORCH_CHECK(scales.dim() == 1, "scale tensor must have dimension 1");
  TORCH_CHECK(zero_points.dim() == 1, "zero_points tensor must have dimension 1");
  TORCH_CHECK(scales.numel() == zero_points.numel(),
              "number of elements in scales and zero_points must match, got ", scales.numel(),
              " and ", zero_points.numel());
  auto made = std::make_shared<Quantizer>();
  const bool real = zero_points.is_floating_point();
  made->scheme = real ? Scheme::PerChannelFloat : Scheme::PerChannelAffine;
  made->axis = axis;
  made->scales = scales.to(real ? kFloat : kDouble).contiguous().clone();
  made->zero_points = zero_points.to(real ? kFloat : kLong).contiguous().clone();
  return made;
}

const QuantizerPtr& quantizer_of(const Tensor& self, const char* op) {
  const auto* impl =
      self.defined() ? dynamic_cast<QuantizedTensorImpl*>(self.unsafeGetTensorImpl()) : nullptr;
  TORCH_CHECK_NOT_IMPLEMENTED(impl != nullptr, "Could not run 'aten::", op,
                              "' with arguments from the 'CPU' backend: the tensor is not "
                              "quantized");
  return impl->quantizer();
}

Tensor empty_levels(IntArrayRef sizes, ScalarType dtype, QuantizerPtr quantizer,
                    MemoryFormat format) {
  for (int64_t s : sizes)
    TORCH_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
  check_channels(*quantizer, sizes);
  const Device device(kCPU);
  Storage storage =
      c10::make_storage(static_cast<size_t>(level_bytes(c10::checked_numel(sizes), dtype)), device);
  auto impl = c10::make_intrusive<QuantizedTensorImpl>(std::move(storage), dtype, device,
                                                       std::move(quantizer));
  impl->set_contiguous(sizes);
  const bool last2d = format == MemoryFormat::ChannelsLast && sizes.size() == 4;
  const bool last3d = format == MemoryFormat::ChannelsLast3d && sizes.size() == 5;
  if (last2d || last3d) impl->set_geometry(sizes, c10::channels_last_strides(sizes), 0);
  return Tensor(std::move(impl));
}

Tensor levels_of(const Tensor& self, const char* op) {
  quantizer_of(self, op);
  const LevelType& type = level_type(self.scalar_type(), op);
  TORCH_CHECK_NOT_IMPLEMENTED(type.bits >= 8, "'", op, "' is not implemented for tensors of dtype ",
                              self.scalar_type(), " on cpu, whose elements share bytes");
  auto impl = c10::make_intrusive<TensorImpl>(self.storage(), DispatchKeySet(DispatchKey::CPU),
                                              type.plain, self.device());
  impl->set_geometry(self.sizes(), self.strides(), self.storage_offset());
  return Tensor(std::move(impl));
}

Tensor packed_bytes(const Tensor& self) {
  auto impl = c10::make_intrusive<TensorImpl>(self.storage(), DispatchKeySet(DispatchKey::CPU),
                                              ScalarType::Byte, self.device());
  impl->set_contiguous({level_bytes(self.numel(), self.scalar_type())});
  return Tensor(std::move(impl));
}

Tensor from_levels(const Tensor& levels, ScalarType dtype, QuantizerPtr quantizer) {
  TORCH_INTERNAL_ASSERT(level_type(dtype, "from_levels").plain == levels.scalar_type());
  check_channels(*quantizer, levels.sizes());
  auto impl = c10::make_intrusive<QuantizedTensorImpl>(levels.storage(), dtype, levels.device(),
                                                       std::move(quantizer));
  impl->set_geometry(levels.sizes(), levels.strides(), levels.storage_offset());
  return Tensor(std::move(impl));
}

ScalarType quantized_dtype(ScalarType plain, const char* op) {
  for (ScalarType dtype : {ScalarType::QUInt8, ScalarType::QInt8, ScalarType::QInt32})
    if (find_level_type(dtype)->plain == plain) return dtype;
  TORCH_CHECK(false, op, ": expected a tensor of dtype uint8, int8 or int32, got ", plain);
}

void check_view(const QuantizedTensorImpl& source, ScalarType dtype, IntArrayRef sizes,
                IntArrayRef strides) {
  TORCH_CHECK(dtype == source.dtype(), "a quantized tensor of dtype ", source.dtype(),
              " cannot be viewed as ", dtype, ": int_repr() gives its levels");
  const bool same = sizes == source.sizes() && strides == source.strides();
  TORCH_CHECK(same || !source.quantizer()->per_channel(),
              "Setting strides is possible only on uniformly quantized tensor");
  TORCH_CHECK_NOT_IMPLEMENTED(same || level_type(dtype, "view").bits >= 8,
                              "views of tensors of dtype ", dtype,
                              " are not implemented: elements share bytes");
}

} // namespace at::quantized
