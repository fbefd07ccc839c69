// Convolutions with 8-bit weights: the patches of some output positions are copied side by side, in
// the order of the channels-last memory they come from, and multiplied as in a linear layer.
// Transposed convolutions run in float32 on centred levels, whose sums are integers too.
#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/quantized/Linear.h>
#include <ATen/native/quantized/Values.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sub.h>
#include <ATen/parallel/Parallel.h>

namespace at::quantized {
namespace {

constexpr int kSpace = 3; // dimensions of space; missing ones have size 1
constexpr int64_t kTileRows = 48;

MemoryFormat last_format(int64_t rank) {
  return rank == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}

// Lists of fewer than three numbers, filled up in front.
struct Triple {
  int64_t at[kSpace];
  Triple(IntArrayRef given, int64_t missing) {
    const size_t n = given.size();
    for (size_t d = 0; d < kSpace; ++d) at[d] = d + n < kSpace ? missing : given[d + n - kSpace];
  }
};

struct Geometry {
  int64_t batch, channels, outputs, groups;
  Triple in, out, kernel, stride, padding, dilation;
  int64_t positions() const { return batch * out.at[0] * out.at[1] * out.at[2]; }
  int64_t group_channels() const { return channels / groups; }
  int64_t k() const { return kernel.at[0] * kernel.at[1] * kernel.at[2] * group_channels(); }
};

DimVector out_space(const Tensor& input, const ConvWeight& w) {
  DimVector out;
  for (size_t d = 0; d + 2 < static_cast<size_t>(input.dim()); ++d) {
    const int64_t dim = static_cast<int64_t>(d) + 2;
    const int64_t reach = w.shape.dilation[d] * (w.weight.size(dim) - 1) + 1;
    const int64_t room = input.size(dim) + 2 * w.shape.padding[d] - reach;
    TORCH_CHECK(room >= 0,
                "Calculated padded input size per channel is smaller than the kernel: "
                "input ",
                input.sizes(), ", weight ", w.weight.sizes());
    out.push_back(room / w.shape.stride[d] + 1);
  }
  return out;
}

// The patch of one output position, for one group.
void copy_patch(const Geometry& g, const uint8_t* image, const int64_t* at, int64_t group,
                uint8_t outside, uint8_t* row) {
  const int64_t width = g.group_channels();
  const uint8_t* channels = image + group * width;
  for (int64_t a = 0; a < g.kernel.at[0]; ++a) {
    const int64_t d = at[0] * g.stride.at[0] - g.padding.at[0] + a * g.dilation.at[0];
    for (int64_t b = 0; b < g.kernel.at[1]; ++b) {
      const int64_t h = at[1] * g.stride.at[1] - g.padding.at[1] + b * g.dilation.at[1];
      for (int64_t c = 0; c < g.kernel.at[2]; ++c, row += width) {
        const int64_t x = at[2] * g.stride.at[2] - g.padding.at[2] + c * g.dilation.at[2];
        const bool inside =
            d >= 0 && d < g.in.at[0] && h >= 0 && h < g.in.at[1] && x >= 0 && x < g.in.at[2];
        if (inside)
          std::memcpy(row, channels + ((d * g.in.at[1] + h) * g.in.at[2] + x) * g.channels,
                      static_cast<size_t>(width));
        else
          std::memset(row, outside, static_cast<size_t>(width));
      }
    }
  }
}

// Positions [first, first + count) of the output of one group.
void copy_patches(const Geometry& g, const uint8_t* input, int64_t first, int64_t count,
                  int64_t group, uint8_t outside, uint8_t* rows, int64_t stride) {
  const int64_t image = g.in.at[0] * g.in.at[1] * g.in.at[2] * g.channels;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = first + i, at[kSpace];
    for (int d = kSpace - 1; d >= 0; --d) {
      at[d] = rest % g.out.at[d];
      rest /= g.out.at[d];
    }
    copy_patch(g, input + rest * image, at, group, outside, rows + i * stride);
  }
}

struct Activation {
  Tensor levels; // unsigned, channels last
  float scale;
  int64_t zero_point;
  ScalarType dtype;
};

void multiply_group(const Geometry& g, const Activation& x, const ConvWeight& w, const Tensor& bias,
                    int64_t group, const Result& result, void* out, int64_t itemsize) {
  const int64_t per_group = g.outputs / g.groups, first = group * per_group;
  const size_t begin = static_cast<size_t>(first), end = static_cast<size_t>(first + per_group);
  OutputScales scales;
  scales.scales.assign(w.scales.scales.begin() + begin, w.scales.scales.begin() + end);
  scales.zero_points.assign(w.scales.zero_points.begin() + begin,
                            w.scales.zero_points.begin() + end);
  scales.centred = w.scales.centred;
  const int8::Weight& packed = w.packed[static_cast<size_t>(group)];
  const Tensor part = bias.defined() ? bias.narrow(0, first, per_group) : bias;
  Prepared prepared(scales, packed.sums(), part, x.scale, x.zero_point, g.k(), result, x.dtype);
  prepared.epilogue.out = static_cast<char*>(out) + first * itemsize;
  prepared.epilogue.stride = g.outputs;
  const uint8_t* input = static_cast<const uint8_t*>(x.levels.data_ptr());
  const int64_t stride = int8::padded(g.k());
  std::vector<int32_t> sums;
  if (!scales.centred) sums.resize(static_cast<size_t>(g.positions()));
  prepared.epilogue.row_sum = sums.data();
  const int64_t tiles = (g.positions() + kTileRows - 1) / kTileRows;
  const int64_t work = kTileRows * std::max<int64_t>(1, g.k()) * per_group;
  const int64_t grain = std::max<int64_t>(1, (1 << 20) / work);
  parallel_for(0, tiles, grain, [&](int64_t begin_tile, int64_t end_tile) {
    std::vector<uint8_t> rows(static_cast<size_t>(kTileRows * stride));
    std::vector<int32_t> scratch;
    for (int64_t tile = begin_tile; tile < end_tile; ++tile) {
      const int64_t row = tile * kTileRows, count = std::min(kTileRows, g.positions() - row);
      copy_patches(g, input, row, count, group, static_cast<uint8_t>(x.zero_point), rows.data(),
                   stride);
      if (!sums.empty())
        int8::table().row_sums(rows.data(), stride, count, g.k(), sums.data() + row);
      int8::multiply_tile(rows.data(), stride, row, count, packed, prepared.epilogue,
                          prepared.finish, scratch);
    }
  });
}

Tensor empty_result(IntArrayRef sizes, const Result& result, ScalarType dtype) {
  if (result.levels) {
    return empty_levels(sizes, dtype, per_tensor(result.scale, result.zero_point),
                        last_format(static_cast<int64_t>(sizes.size())));
  }
  return detail::empty_strided(sizes, c10::channels_last_strides(sizes), kFloat);
}

Tensor forward(const Activation& x, const ConvWeight& w, const Result& result) {
  const Tensor& in = x.levels;
  const DimVector space = out_space(in, w);
  DimVector sizes{in.size(0), w.outputs()};
  for (int64_t s : space) sizes.push_back(s);
  Geometry g{in.size(0),
             in.size(1),
             w.outputs(),
             w.shape.groups,
             Triple(in.sizes().slice(2), 1),
             Triple(space, 1),
             Triple(w.weight.sizes().slice(2), 1),
             Triple(w.shape.stride, 1),
             Triple(w.shape.padding, 0),
             Triple(w.shape.dilation, 1)};
  Tensor out = empty_result(sizes, result, x.dtype);
  if (out.numel() == 0) return out;
  const Tensor bias = w.bias.defined() ? w.bias.contiguous() : w.bias;
  for (int64_t group = 0; group < g.groups; ++group)
    multiply_group(g, x, w, bias, group, result, out.data_ptr(), out.itemsize());
  return out;
}

// The sums of a transposed convolution are integers in float32: exact up to 2^24.
Tensor transposed(const Activation& x, const ConvWeight& w, const Result& result) {
  const Tensor centred = at::sub(x.levels.to(kFloat), static_cast<double>(x.zero_point));
  const QuantizerPtr own = quantizer_of(w.weight, "conv_transpose");
  const Tensor unit =
      own->per_channel()
          ? from_levels(levels_of(w.weight, "conv_transpose"), w.weight.scalar_type(),
                        per_channel(at::ones_like(own->scales), own->zero_points, own->axis))
          : from_levels(levels_of(w.weight, "conv_transpose"), w.weight.scalar_type(),
                        per_tensor(1, own->zero_point));
  const Tensor sums =
      at::convolution(centred, dequantize(unit), std::nullopt, w.shape.stride, w.shape.padding,
                      w.shape.dilation, true, w.shape.output_padding, w.shape.groups);
  DimVector shape(static_cast<size_t>(sums.dim()), 1);
  shape[1] = w.outputs();
  Tensor scale = detail::empty(shape, kFloat);
  for (int64_t j = 0; j < w.outputs(); ++j)
    scale.data_ptr<float>()[j] = x.scale * w.scales.scales[static_cast<size_t>(j)];
  Tensor values = at::mul(sums, scale);
  if (w.bias.defined()) values = at::add(values, w.bias.reshape(shape));
  if (result.relu) values = at::clamp_min(values, 0);
  if (!result.levels) return values;
  return quantize(values, x.dtype, per_tensor(result.scale, result.zero_point));
}

void check_input(const Tensor& input, const ConvWeight& w, const char* op) {
  TORCH_CHECK(input.dim() == w.weight.dim(), op, ": expected an input of ", w.weight.dim(),
              " dimensions, got ", input.sizes());
  const int64_t channels =
      w.shape.transposed ? w.weight.size(0) : w.weight.size(1) * w.shape.groups;
  TORCH_CHECK(input.size(1) == channels, op, ": Given groups=", w.shape.groups, ", weight of size ",
              w.weight.sizes(), ", expected input", input.sizes(), " to have ", channels,
              " channels, but got ", input.size(1), " channels instead");
}

Tensor run(const Tensor& input, const ConvWeight& w, const Result& result) {
  const Quantizer& q = *quantizer_of(input, "quantized::conv");
  const ScalarType dtype = input.scalar_type();
  TORCH_CHECK(dtype == ScalarType::QUInt8 || dtype == ScalarType::QInt8,
              "quantized::conv: expected input of dtype quint8 or qint8, got ", dtype);
  TORCH_CHECK(!q.per_channel(), "quantized::conv: the input must be quantized per tensor");
  check_input(input, w, "quantized::conv");
  Tensor levels = levels_of(input, "quantized::conv").contiguous(last_format(input.dim()));
  int64_t zero_point = q.zero_point;
  if (dtype == ScalarType::QInt8) {
    levels = at::add(levels.to(kShort), 128).to(kByte);
    zero_point += 128;
  }
  const Activation x{levels, static_cast<float>(q.scale), zero_point, dtype};
  return w.shape.transposed ? transposed(x, w, result) : forward(x, w, result);
}

} // namespace

ConvWeight::ConvWeight(const Tensor& w, const Tensor& b, ConvShape s)
    : weight(w), bias(b), shape(std::move(s)) {
  constexpr const char* op = "quantized::conv_prepack";
  TORCH_CHECK(w.dim() == 4 || w.dim() == 5, op, ": expected a weight of 4 or 5 dimensions, got ",
              w.dim());
  TORCH_CHECK(w.scalar_type() == ScalarType::QInt8, op, ": expected a weight of dtype qint8, got ",
              w.scalar_type());
  const size_t space = static_cast<size_t>(w.dim()) - 2;
  for (const auto* list : {&shape.stride, &shape.padding, &shape.dilation, &shape.output_padding})
    TORCH_CHECK(list->size() == space, op, ": expected ", space,
                " numbers for each dimension of "
                "space, got ",
                list->size());
  for (size_t d = 0; d < space; ++d)
    TORCH_CHECK(shape.stride[d] > 0 && shape.dilation[d] > 0 && shape.padding[d] >= 0, op,
                ": strides and dilations must be positive and paddings not negative");
  TORCH_CHECK(shape.groups > 0 && w.size(0) % shape.groups == 0, op, ": groups (", shape.groups,
              ") must divide the first dimension of the weight (", w.size(0), ")");
  scales = output_scales(w, outputs(), op);
  TORCH_CHECK(!b.defined() || (b.dim() == 1 && b.size(0) == outputs()), op,
              ": bias should be a vector of ", outputs(), " elements");
  if (shape.transposed) return;
  const Tensor levels = levels_of(w, op).contiguous(last_format(w.dim()));
  const int64_t per_group = w.size(0) / shape.groups,
                k = w.numel() / std::max<int64_t>(1, w.size(0));
  for (int64_t group = 0; group < shape.groups; ++group)
    packed.emplace_back(static_cast<const int8_t*>(levels.data_ptr()) + group * per_group * k,
                        per_group, k, k, 1);
}

Tensor conv(const Tensor& input, const ConvWeight& weight, const Result& result) {
  return run(input, weight, result);
}

Tensor conv_dynamic(const Tensor& input, const ConvWeight& weight, bool reduce_range) {
  TORCH_CHECK(input.scalar_type() == kFloat,
              "quantized::conv_dynamic: expected an input of dtype float32, got ",
              input.scalar_type());
  check_input(input, weight, "quantized::conv_dynamic");
  const auto [least, greatest] = bounds_of(input);
  GridOptions options;
  options.reduce = reduce_range;
  const Grid grid = choose_grid(least, greatest, options);
  return run(quantize(input, ScalarType::QUInt8, per_tensor(grid.scale, grid.zero_point)), weight,
             Result::values(false));
}

} // namespace at::quantized
