// Values to levels and back, tensor by tensor. See Values.h.
#include <ATen/native/quantized/Values.h>

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/parallel/Parallel.h>

namespace at::quantized {

namespace levels {
CRESSET_DEFINE_ISA_TABLE(Table);
}

namespace {

constexpr int64_t kGrain = 32768;

// Elements per byte of packed types.
int per_byte(ScalarType dtype) { return 8 / level_type(dtype, "pack").bits; }

// A dense tensor as runs of elements that share a scale: outer x channels x inner.
struct Runs {
  int64_t outer = 1, channels = 1, inner = 1;
  std::vector<levels::Scaling> scaling;
  const levels::Scaling& of(int64_t run) const {
    return scaling[static_cast<size_t>(run % channels)];
  }
};

Runs runs_of(const Quantizer& q, IntArrayRef sizes) {
  Runs runs;
  if (!q.per_channel()) {
    runs.inner = c10::checked_numel(sizes);
    runs.scaling.push_back({static_cast<float>(q.scale), static_cast<float>(q.zero_point)});
    return runs;
  }
  const size_t axis = static_cast<size_t>(q.axis);
  runs.channels = sizes[axis];
  for (size_t d = 0; d < axis; ++d) runs.outer *= sizes[d];
  for (size_t d = axis + 1; d < sizes.size(); ++d) runs.inner *= sizes[d];
  const Tensor scales = q.scales.to(kFloat), zeros = q.zero_points.to(kFloat);
  for (int64_t c = 0; c < runs.channels; ++c)
    runs.scaling.push_back({scales.data_ptr<float>()[c], zeros.data_ptr<float>()[c]});
  return runs;
}

// Calls f(first, count, scaling) for stretches of consecutive elements.
template <class F> void for_runs(const Runs& runs, const F& f) {
  const int64_t count = runs.outer * runs.channels;
  if (count == 0 || runs.inner == 0) return;
  if (count == 1) {
    parallel_for(0, runs.inner, kGrain,
                 [&](int64_t begin, int64_t end) { f(begin, end - begin, runs.of(0)); });
    return;
  }
  parallel_for(0, count, std::max<int64_t>(1, kGrain / runs.inner),
               [&](int64_t begin, int64_t end) {
                 for (int64_t run = begin; run < end; ++run)
                   f(run * runs.inner, runs.inner, runs.of(run));
               });
}

void pack(const uint8_t* levels, int64_t n, ScalarType dtype, uint8_t* bytes) {
  const int count = per_byte(dtype), bits = 8 / count;
  for (int64_t i = 0; i < n; i += count) {
    int byte = 0;
    for (int k = 0; k < count && i + k < n; ++k) byte |= levels[i + k] << (bits * k);
    bytes[i / count] = static_cast<uint8_t>(byte);
  }
}
void unpack(const uint8_t* bytes, int64_t n, ScalarType dtype, uint8_t* levels) {
  const int count = per_byte(dtype), bits = 8 / count, mask = (1 << bits) - 1;
  for (int64_t i = 0; i < n; ++i)
    levels[i] = static_cast<uint8_t>((bytes[i / count] >> (bits * (i % count))) & mask);
}

void quantize_packed(const float* values, const Runs& runs, ScalarType dtype, int64_t n,
                     uint8_t* bytes) {
  std::vector<uint8_t> wide(static_cast<size_t>(n));
  const auto& table = levels::table();
  const uint8_t high = static_cast<uint8_t>(level_type(dtype, "quantize").max);
  for_runs(runs, [&](int64_t first, int64_t count, levels::Scaling scaling) {
    uint8_t* out = wide.data() + first;
    table.quantize[levels::kUnsigned8](values + first, out, count, scaling);
    for (int64_t i = 0; i < count; ++i) out[i] = std::min(out[i], high);
  });
  pack(wide.data(), n, dtype, bytes);
}

// Whether the elements lie in the order of the dimensions, or all share one scale and lie densely.
bool linear(const Tensor& t, const Quantizer& q) {
  return t.is_contiguous() || (!q.per_channel() && t.is_non_overlapping_and_dense());
}

} // namespace

levels::Kind kind_of(ScalarType dtype, const char* op) {
  switch (dtype) {
  case ScalarType::QUInt8:
    return levels::kUnsigned8;
  case ScalarType::QInt8:
    return levels::kSigned8;
  case ScalarType::QInt32:
    return levels::kSigned32;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "'", op, "' is not implemented for dtype ", dtype,
                                " on cpu");
  }
}

Tensor quantize(const Tensor& values, ScalarType dtype, QuantizerPtr quantizer) {
  TORCH_CHECK(values.scalar_type() == kFloat, "Quantize only works on Float Tensor, got ",
              values.scalar_type());
  const bool packed = level_type(dtype, "quantize").bits < 8;
  const Tensor dense = (packed || !linear(values, *quantizer)) ? values.contiguous() : values;
  const Runs runs = runs_of(*quantizer, dense.sizes());
  Tensor out = empty_levels(dense.sizes(), dtype, std::move(quantizer));
  if (!dense.is_contiguous())
    out.unsafeGetTensorImpl()->set_geometry(dense.sizes(), dense.strides(), 0);
  if (out.numel() == 0) return out;
  const float* in = dense.data_ptr<float>();
  char* levels = static_cast<char*>(out.data_ptr());
  if (packed) {
    quantize_packed(in, runs, dtype, out.numel(), reinterpret_cast<uint8_t*>(levels));
    return out;
  }
  const auto loop = levels::table().quantize[kind_of(dtype, "quantize")];
  const int64_t size = out.itemsize();
  for_runs(runs, [&](int64_t first, int64_t count, levels::Scaling scaling) {
    loop(in + first, levels + first * size, count, scaling);
  });
  return out;
}

Tensor dequantize(const Tensor& self) {
  const QuantizerPtr quantizer = quantizer_of(self, "dequantize");
  const ScalarType dtype = self.scalar_type();
  const bool packed = level_type(dtype, "dequantize").bits < 8;
  Tensor source = self;
  if (!packed && !linear(self, *quantizer))
    source = from_levels(levels_of(self, "dequantize").contiguous(), dtype, quantizer);
  const Runs runs = runs_of(*quantizer, source.sizes());
  Tensor out = source.is_contiguous()
                   ? detail::empty(source.sizes(), kFloat)
                   : detail::empty_strided(source.sizes(), source.strides(), kFloat);
  if (out.numel() == 0) return out;
  float* values = out.data_ptr<float>();
  const char* levels = static_cast<const char*>(source.data_ptr());
  std::vector<uint8_t> wide;
  if (packed) {
    wide.resize(static_cast<size_t>(out.numel()));
    unpack(reinterpret_cast<const uint8_t*>(levels), out.numel(), dtype, wide.data());
    levels = reinterpret_cast<const char*>(wide.data());
  }
  const auto kind = packed ? levels::kUnsigned8 : kind_of(dtype, "dequantize");
  const auto loop = levels::table().dequantize[kind];
  const int64_t size = packed ? 1 : source.itemsize();
  for_runs(runs, [&](int64_t first, int64_t count, levels::Scaling scaling) {
    loop(levels + first * size, values + first, count, scaling);
  });
  return out;
}

void quantize_into(const Tensor& self, const Tensor& values) {
  const QuantizerPtr quantizer = quantizer_of(self, "copy_");
  TORCH_CHECK(self.sizes() == values.sizes(),
              "Quantized copy only works with Tensors with the same shape");
  const Tensor rounded = quantize(values, self.scalar_type(), quantizer);
  if (level_type(self.scalar_type(), "copy_").bits < 8)
    packed_bytes(self).copy_(packed_bytes(rounded));
  else
    levels_of(self, "copy_").copy_(levels_of(rounded, "copy_"));
  self.unsafeGetTensorImpl()->bump_version();
}

std::pair<float, float> bounds_of(const Tensor& values) {
  TORCH_CHECK(values.numel() > 0,
              "min(): Expected reduction dim to be specified for "
              "input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  const Tensor dense = values.is_non_overlapping_and_dense() ? values : values.contiguous();
  const float* data = dense.data_ptr<float>();
  const int64_t n = dense.numel(), chunks = chunk_count(n, kGrain);
  std::vector<float> low(static_cast<size_t>(chunks)), high(static_cast<size_t>(chunks));
  const auto& table = levels::table();
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    const size_t chunk = static_cast<size_t>(begin / chunk_size(n, kGrain));
    table.bounds(data + begin, end - begin, &low[chunk], &high[chunk]);
  });
  float least = low[0], greatest = high[0];
  for (size_t i = 1; i < low.size(); ++i) {
    least = low[i] < least || std::isnan(low[i]) ? low[i] : least;
    greatest = high[i] > greatest || std::isnan(high[i]) ? high[i] : greatest;
  }
  return {least, greatest};
}

Grid choose_grid(float least, float greatest, const GridOptions& options) {
  TORCH_CHECK(least <= greatest,
              "In ChooseQuantizationParams, min should be less than or equal to "
              "max, got ",
              least, " and ", greatest);
  const int64_t low = options.reduce ? options.low / 2 : options.low;
  const int64_t high = options.reduce ? options.high / 2 : options.high;
  const double steps = static_cast<double>(high) - static_cast<double>(low);
  double min = least, max = greatest;
  if (options.symmetric && min < 0 && max > 0) {
    // The same number of steps on both sides of the middle.
    const double middle = std::floor((static_cast<double>(high) + static_cast<double>(low)) / 2);
    const double span = std::max(std::fabs(min / (low - middle)), std::fabs(max / (high - middle)));
    min = span * (low - middle);
    max = span * (high - middle);
  }
  min = std::min(min, 0.0);
  max = std::max(max, 0.0);
  double scale = (max - min) / steps;
  // A range that float32 cannot tell from nothing gets an arbitrary grid.
  if (static_cast<float>(scale) == 0.0f || std::isinf(1.0f / static_cast<float>(scale)))
    scale = 0.1;
  // Levels closer than this lose their meaning in float32: the range grows around zero.
  constexpr float kSmallest = 6.1e-5f;
  if (scale < kSmallest) {
    const double small = scale;
    scale = kSmallest;
    if (min == 0.0) {
      max = scale * steps;
    } else if (max == 0.0) {
      min = -scale * steps;
    } else {
      min *= scale / small;
      max *= scale / small;
    }
  }
  // Both ends give a zero point; that of the end with the smaller rounding error is taken.
  const double from_min = low - min / scale, from_max = high - max / scale;
  const double min_error = std::fabs(static_cast<double>(low)) + std::fabs(min / scale);
  const double max_error = std::fabs(static_cast<double>(high)) + std::fabs(max / scale);
  double zero = min_error < max_error ? from_min : from_max;
  if (options.symmetric && min < 0 && max > 0) zero = static_cast<double>(low + high) / 2;
  if (zero < low) return {scale, low};
  if (zero > high) return {scale, high};
  return {scale, static_cast<int64_t>(std::nearbyint(zero))};
}

} // namespace at::quantized
