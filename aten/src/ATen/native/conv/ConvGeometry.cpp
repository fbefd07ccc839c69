// Checks and output sizes of convolutions, with the shape function of `convolution`.
#include <ATen/native/conv/ConvGeometry.h>
#include <c10/core/MemoryFormat.h>

#include <string>

namespace at::native {
namespace {

bool any_below(IntArrayRef values, int64_t bound) {
  for (int64_t v : values)
    if (v < bound) return true;
  return false;
}

// "(4 x 4)"
std::string crossed(IntArrayRef values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += " x ";
    out += std::to_string(values[i]);
  }
  return out;
}

// "stride_height: 1 stride_width: 2"; one dimension is spoken of as a row of a plane.
std::string by_axis(const char* name, IntArrayRef values, int64_t missing) {
  static constexpr const char* axes[] = {"depth", "height", "width"};
  DimVector all(values);
  if (all.size() == 1) all.insert(all.begin(), missing);
  std::string out;
  for (size_t i = 0; i < all.size() && all.size() <= 3; ++i) {
    out += c10::str(i ? " " : "", name, "_", axes[3 - all.size() + i], ": ", all[i]);
  }
  return out;
}

int64_t fitting(__int128 value) {
  TORCH_CHECK(value <= INT64_MAX && value >= INT64_MIN,
              "convolution: a size does not fit in 64 bits");
  return static_cast<int64_t>(value);
}

void check_params(const ConvParams& p) {
  TORCH_CHECK(!any_below(p.padding, 0), "negative padding is not supported");
  TORCH_CHECK(!any_below(p.output_padding, 0), "negative output_padding is not supported");
  TORCH_CHECK(!any_below(p.stride, 1), "non-positive stride is not supported");
  TORCH_CHECK(!any_below(p.dilation, 1), "dilation should be greater than zero, but got ",
              IntArrayRef(p.dilation));
  TORCH_CHECK(p.groups > 0, "non-positive groups is not supported");
}

void check_bias(const std::optional<Tensor>& bias, IntArrayRef weight, int64_t channels,
                bool transposed) {
  if (!bias || !bias->defined()) return;
  TORCH_CHECK(bias->dim() == 1 && bias->size(0) == channels, "Given ",
              transposed ? "transposed=1, " : "", "weight of size ", weight,
              ", expected bias to be 1-dimensional with ", channels,
              " elements, but got bias of size ", bias->sizes(), " instead");
}

void check_plain(IntArrayRef input, IntArrayRef weight, const ConvParams& p) {
  int64_t channels;
  TORCH_CHECK(!c10::mul_overflows(weight[1], p.groups, &channels), "groups is too large");
  TORCH_CHECK(input[1] == channels, "Given groups=", p.groups, ", weight of size ", weight,
              ", expected input", input, " to have ", channels, " channels, but got ", input[1],
              " channels instead");
  DimVector padded, kernel;
  bool too_small = false;
  for (size_t i = 0; i + 2 < input.size(); ++i) {
    padded.push_back(fitting(__int128(input[i + 2]) + 2 * __int128(p.padding[i])));
    kernel.push_back(fitting(__int128(p.dilation[i]) * (weight[i + 2] - 1) + 1));
    too_small |= padded[i] < kernel[i];
  }
  TORCH_CHECK(!too_small, "Calculated padded input size per channel: (", crossed(padded),
              "). Kernel size: (", crossed(kernel),
              "). Kernel size can't be greater than actual input size");
}

void check_transposed(IntArrayRef input, IntArrayRef weight, const ConvParams& p) {
  TORCH_CHECK(input[1] == weight[0], "Given transposed=1, weight of size ", weight,
              ", expected input", input, " to have ", weight[0], " channels, but got ", input[1],
              " channels instead");
  for (size_t i = 0; i + 2 < input.size(); ++i) {
    TORCH_CHECK(
        input[i + 2] > 0 || input[0] == 0,
        "Only zero batch or zero channel inputs are supported, but got input shape: ", input);
    TORCH_CHECK(p.output_padding[i] < p.stride[i] || p.output_padding[i] < p.dilation[i],
                "output padding must be smaller than either stride or dilation, but got ",
                by_axis("output_padding", p.output_padding, 0), " ", by_axis("stride", p.stride, 1),
                " ", by_axis("dilation", p.dilation, 1));
  }
}

} // namespace

DimVector expand_conv_param(IntArrayRef values, const char* name, int64_t dim) {
  if (values.size() == 1) return DimVector(dim, values[0]);
  TORCH_CHECK(static_cast<int64_t>(values.size()) == dim, "expected ", name,
              " to be a single integer value or a list of ", dim,
              " values to match the convolution dimensions, but got ", name, "=", values);
  return DimVector(values);
}

ConvParams check_conv_params(int64_t rank, IntArrayRef stride, IntArrayRef padding,
                             IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                             int64_t groups) {
  TORCH_CHECK(rank >= 3, "weight should have at least three dimensions");
  ConvParams p;
  p.stride = expand_conv_param(stride, "stride", rank - 2);
  p.padding = expand_conv_param(padding, "padding", rank - 2);
  p.dilation = expand_conv_param(dilation, "dilation", rank - 2);
  p.output_padding = expand_conv_param(output_padding, "output_padding", rank - 2);
  p.transposed = transposed;
  p.groups = groups;
  check_params(p);
  return p;
}

ConvParams check_convolution(IntArrayRef input, IntArrayRef weight,
                             const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef dilation, bool transposed,
                             IntArrayRef output_padding, int64_t groups) {
  const int64_t rank = static_cast<int64_t>(weight.size());
  const ConvParams p =
      check_conv_params(rank, stride, padding, dilation, transposed, output_padding, groups);
  TORCH_CHECK(input.size() == weight.size(), "Expected ", rank, "-dimensional input for ", rank,
              "-dimensional weight ", weight, ", but got ", input.size(),
              "-dimensional input of size ", input, " instead");
  TORCH_CHECK(
      rank <= 5,
      "convolution: at most three spatial dimensions are supported, but got weight of size ",
      weight);
  TORCH_CHECK(weight[0] >= groups, "Given groups=", groups, ", expected weight to be at least ",
              groups, " at dimension 0, but got weight of size ", weight, " instead");
  TORCH_CHECK(weight[0] % groups == 0, "Given groups=", groups,
              ", expected weight to be divisible by ", groups,
              " at dimension 0, but got weight of size [", weight, "] instead");
  for (int64_t i = 2; i < rank; ++i)
    TORCH_CHECK(weight[i] > 0, "kernel size should be greater than zero, but got weight of size ",
                weight);
  if (transposed) {
    check_transposed(input, weight, p);
  } else {
    check_plain(input, weight, p);
  }
  int64_t channels = weight[0];
  if (transposed)
    TORCH_CHECK(!c10::mul_overflows(weight[1], groups, &channels), "groups is too large");
  check_bias(bias, weight, channels, transposed);
  return p;
}

DimVector convolution_output_size(IntArrayRef input, IntArrayRef weight, const ConvParams& p) {
  DimVector out{input[0], p.transposed ? weight[1] * p.groups : weight[0]};
  DimVector spatial;
  bool too_small = false;
  for (size_t i = 0; i + 2 < input.size(); ++i) {
    const __int128 reach = __int128(p.dilation[i]) * (weight[i + 2] - 1),
                   pad = 2 * __int128(p.padding[i]);
    const __int128 size = p.transposed ? __int128(input[i + 2] - 1) * p.stride[i] - pad + reach +
                                             p.output_padding[i] + 1
                                       : (input[i + 2] + pad - reach - 1) / p.stride[i] + 1;
    spatial.push_back(fitting(size));
    too_small |= size < (p.transposed ? 1 : 0);
  }
  TORCH_CHECK(!too_small, "Given input size per channel: (",
              crossed(input.slice(2, input.size() - 2)), "). Calculated output size per channel: (",
              crossed(spatial), "). Output size is too small");
  for (int64_t s : spatial) out.push_back(s);
  return out;
}

c10::SmallVector<SymInt, 6> symbolic_convolution_size(const Tensor& input, const Tensor& weight,
                                                      const std::optional<Tensor>& bias,
                                                      const ConvParams& p) {
  const SymIntArrayRef in = input.sym_sizes(), w = weight.sym_sizes();
  TORCH_CHECK(in.size() == w.size() && w.size() <= 5, "Expected ", w.size(),
              "-dimensional input for ", w.size(), "-dimensional weight ", w, ", but got ",
              in.size(), "-dimensional input of size ", in, " instead");
  const SymInt channels = p.transposed ? w[0] : w[1] * p.groups;
  TORCH_CHECK(c10::expect_true(c10::sym_eq(in[1], channels)), "Given groups=", p.groups,
              ", weight of size ", w, ", expected input", in, " to have ", channels,
              " channels, but got ", in[1], " channels instead");
  c10::SmallVector<SymInt, 6> out{in[0], p.transposed ? w[1] * p.groups : w[0]};
  TORCH_CHECK(!bias || !bias->defined() ||
                  (bias->dim() == 1 && c10::expect_true(c10::sym_eq(bias->sym_size(0), out[1]))),
              "Given weight of size ", w, ", expected bias to be 1-dimensional with ", out[1],
              " elements");
  for (size_t i = 0; i + 2 < in.size(); ++i) {
    const SymInt reach = (w[i + 2] - 1) * p.dilation[i];
    const SymInt size = p.transposed ? (in[i + 2] - 1) * p.stride[i] - 2 * p.padding[i] + reach +
                                           (p.output_padding[i] + 1)
                                     : (in[i + 2] + 2 * p.padding[i] - reach - 1) / p.stride[i] + 1;
    TORCH_CHECK(c10::expect_true(c10::sym_gt(size, 0)), "Given input ", in, " and weight ", w,
                ". Output size is too small");
    out.push_back(size);
  }
  return out;
}

ConvGeometry conv_geometry(IntArrayRef large, IntArrayRef weight, IntArrayRef small,
                           const ConvParams& p) {
  ConvGeometry g;
  g.n = large[0];
  g.c = large[1];
  g.o = small[1];
  g.groups = p.groups;
  const int dims = static_cast<int>(large.size()) - 2;
  for (int i = 0; i < 3; ++i) {
    const int from = i - (3 - dims);
    const bool given = from >= 0;
    g.in[i] = given ? large[from + 2] : 1;
    g.out[i] = given ? small[from + 2] : 1;
    g.kernel[i] = given ? weight[from + 2] : 1;
    g.stride[i] = given ? p.stride[from] : 1;
    g.padding[i] = given ? p.padding[from] : 0;
    g.dilation[i] = given ? p.dilation[from] : 1;
  }
  return g;
}

MemoryFormat conv_memory_format(const Tensor& input, const Tensor& weight) {
  const MemoryFormat format = input.suggest_memory_format();
  return format == MemoryFormat::Contiguous ? weight.suggest_memory_format() : format;
}

} // namespace at::native
