// Tensors of small integers ("levels") that stand for real numbers: value = (level - zero_point) *
// scale, with one scale for the whole tensor or one for each slice along an axis. The levels lie in
// a storage like any other; what they mean is an immutable Quantizer that views and copies share.
// Such a tensor has the key QuantizedCPU alone, so that no kernel takes its levels for values:
// operators reach it through kernels of that key (Dispatcher.cpp, quantized_fallback).
//
// Elements of fewer than eight bits (quint4x2, quint2x4) lie several to a byte, the first in the
// lowest bits. The geometry of such a tensor counts elements, its storage bytes: only the kernels
// that unpack it may look at its memory.
#pragma once
#include <memory>

#include <ATen/core/Tensor.h>

namespace at::quantized {

// In the order of torch.qscheme.
enum class Scheme : uint8_t {
  PerTensorAffine,
  PerChannelAffine,
  PerTensorSymmetric,
  PerChannelSymmetric,
  PerChannelFloat, // real zero points: value = (level - zero_point) * scale all the same
};

struct Quantizer {
  Scheme scheme = Scheme::PerTensorAffine;
  double scale = 1;
  int64_t zero_point = 0;
  // Of the schemes per channel: float64 and int64 numbers, or float32 both for PerChannelFloat.
  Tensor scales;
  Tensor zero_points;
  int64_t axis = 0;
  bool per_channel() const { return scales.defined(); }
};
using QuantizerPtr = std::shared_ptr<const Quantizer>;

class TORCH_API QuantizedTensorImpl final : public c10::TensorImpl {
 public:
  // Error for a device other than the CPU.
  QuantizedTensorImpl(Storage storage, ScalarType dtype, Device device, QuantizerPtr quantizer);
  void copy_metadata_from(const TensorImpl& from) override;
  c10::intrusive_ptr<TensorImpl> shallow_copy() const override;
  const QuantizerPtr& quantizer() const { return quantizer_; }
  void set_quantizer(QuantizerPtr quantizer) { quantizer_ = std::move(quantizer); }

 protected:
  void release_resources() override;

 private:
  QuantizerPtr quantizer_;
};

// What is known of a dtype: how many bits a level has, its bounds, and the plain dtype that its
// bytes have. Error naming `op` for a dtype that is not quantized.
struct LevelType {
  int bits;
  int64_t min, max;
  ScalarType plain;
};
TORCH_API bool is_level_type(ScalarType dtype);
TORCH_API const LevelType& level_type(ScalarType dtype, const char* op);
// The bytes that `numel` levels need.
TORCH_API int64_t level_bytes(int64_t numel, ScalarType dtype);

TORCH_API QuantizerPtr per_tensor(double scale, int64_t zero_point);
// Error when the lengths do not fit each other. The numbers are copied.
TORCH_API QuantizerPtr per_channel(const Tensor& scales, const Tensor& zero_points, int64_t axis);

// The tensor's quantizer; NotImplementedError naming `op` for one that is not quantized.
TORCH_API const QuantizerPtr& quantizer_of(const Tensor& self, const char* op);

// A tensor whose levels are not set. A quantizer per channel must fit the sizes.
TORCH_API Tensor empty_levels(IntArrayRef sizes, ScalarType dtype, QuantizerPtr quantizer,
                              MemoryFormat format = MemoryFormat::Contiguous);
// The levels as plain integers, on the same memory and without history. Error for packed types.
TORCH_API Tensor levels_of(const Tensor& self, const char* op);
// The bytes of a tensor of a packed type, one-dimensional, on the same memory.
TORCH_API Tensor packed_bytes(const Tensor& self);
// Integers as the levels of a quantized tensor, on the same memory; `dtype` is the quantized form
// of theirs.
TORCH_API Tensor from_levels(const Tensor& levels, ScalarType dtype, QuantizerPtr quantizer);
// The quantized dtype of uint8, int8 and int32; Error for others.
TORCH_API ScalarType quantized_dtype(ScalarType plain, const char* op);

// Throws where a view would need other scales than the tensor has, or elements smaller than bytes.
TORCH_API void check_view(const QuantizedTensorImpl& source, ScalarType dtype, IntArrayRef sizes,
                          IntArrayRef strides);

} // namespace at::quantized
