// torch::nn::functional: products, convolutions, embeddings, pooling and images.
#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/functional/vision.h>

#include <cmath>

#include <torch/csrc/api/src/nn/maybe.h>

namespace torch::nn::functional {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return at::linear(input, weight, maybe(bias));
}
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  const auto name = [](const Tensor& t) { return c10::info(t.scalar_type()).legacy_name; };
  TORCH_CHECK(input1.dtype() == input2.dtype() && input1.dtype() == weight.dtype(),
              "All tensors must have the same dtype, got input1: ", name(input1),
              ", input2: ", name(input2), ", weight: ", name(weight));
  return at::bilinear(input1, input2, weight, maybe(bias));
}

namespace {
// How a convolution is padded: by numbers, or by name.
template <size_t D, class WithNumbers, class WithName>
Tensor with_padding(const torch::nn::detail::conv_padding_t<D>& padding,
                    const WithNumbers& with_numbers, const WithName& with_name) {
  if (const auto* numbers = std::get_if<ExpandingArray<D>>(&padding)) return with_numbers(*numbers);
  return with_name(std::holds_alternative<enumtype::kSame>(padding) ? "same" : "valid");
}
} // namespace

#define CRESSET_CONVOLUTION(D)                                                                     \
  Tensor conv##D##d(const Tensor& input, const Tensor& weight, const Conv##D##dFuncOptions& o) {   \
    return with_padding<D>(                                                                        \
        o.padding(),                                                                               \
        [&](IntArrayRef padding) {                                                                 \
          return at::conv##D##d(input, weight, maybe(o.bias()), o.stride(), padding, o.dilation(), \
                                o.groups());                                                       \
        },                                                                                         \
        [&](const char* padding) {                                                                 \
          return at::conv##D##d(input, weight, maybe(o.bias()), o.stride(),                        \
                                std::string_view(padding), o.dilation(), o.groups());              \
        });                                                                                        \
  }                                                                                                \
  Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,                           \
                              const ConvTranspose##D##dFuncOptions& o) {                           \
    return at::conv_transpose##D##d(input, weight, maybe(o.bias()), o.stride(), o.padding(),       \
                                    o.output_padding(), o.groups(), o.dilation());                 \
  }
CRESSET_CONVOLUTION(1)
CRESSET_CONVOLUTION(2)
CRESSET_CONVOLUTION(3)
#undef CRESSET_CONVOLUTION

// ---- embeddings
namespace {
// Rows longer than max_norm are shortened where they stand.
void shorten_rows(const Tensor& weight, const Tensor& rows, std::optional<double> max_norm,
                  double norm_type) {
  if (!max_norm) return;
  const NoGradGuard no_grad;
  Tensor data = weight;
  at::embedding_renorm_(data, rows.contiguous(), *max_norm, norm_type);
}

int64_t wrapped_padding(std::optional<int64_t> index, const Tensor& weight) {
  if (!index) return -1;
  const int64_t rows = weight.size(0);
  TORCH_CHECK(*index < rows && *index >= -rows, "Padding_idx must be within num_embeddings");
  return *index < 0 ? *index + rows : *index;
}
} // namespace

Tensor one_hot(const Tensor& tensor, int64_t num_classes) {
  return at::one_hot(tensor, num_classes);
}
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options) {
  const int64_t padding = wrapped_padding(options.padding_idx(), weight);
  shorten_rows(weight, input, options.max_norm(), options.norm_type());
  return at::embedding(weight, input, padding, options.scale_grad_by_freq(), options.sparse());
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight,
                     const EmbeddingBagFuncOptions& options) {
  Tensor rows = input, offsets = options.offsets(), scale = options.per_sample_weights();
  TORCH_CHECK(!scale.defined() || rows.sizes() == scale.sizes(),
              "embedding_bag: If "
              "per_sample_weights (",
              scale.defined() ? scale.sizes() : IntArrayRef(),
              ") is not null, then it must have the same shape as the input (", rows.sizes(), ")");
  if (rows.dim() == 2) {
    TORCH_CHECK(!offsets.defined(), "If input is 2D, then offsets has to be null, as input is "
                                    "treated is a mini-batch of fixed length sequences.");
    offsets = at::arange(0, rows.numel(), rows.size(1), rows.options());
    rows = rows.reshape({-1});
    if (scale.defined()) scale = scale.reshape({-1});
  } else {
    TORCH_CHECK(rows.dim() == 1, "input has to be 1D or 2D Tensor, but got Tensor of dimension ",
                rows.dim());
    TORCH_CHECK(offsets.defined(), "offsets has to be a 1D Tensor but got null");
    TORCH_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor");
  }
  const bool max = std::holds_alternative<enumtype::kMax>(options.mode());
  const bool sum = std::holds_alternative<enumtype::kSum>(options.mode());
  TORCH_CHECK(!max || !options.scale_grad_by_freq(),
              "max mode does not support scaling the gradient by the frequency");
  TORCH_CHECK(!max || !options.sparse(), "max mode does not support sparse weights");
  TORCH_CHECK(!scale.defined() || sum,
              "embedding_bag: per_sample_weights was not null. per_sample_weights is only "
              "supported for mode='kSum' (got mode='",
              enumtype::get_enum_name(options.mode()),
              "').Please open a feature request on GitHub.");
  shorten_rows(weight, rows, options.max_norm(), options.norm_type());
  return std::get<0>(at::embedding_bag(weight, rows, offsets, options.scale_grad_by_freq(),
                                       max   ? 2
                                       : sum ? 0
                                             : 1,
                                       options.sparse(), maybe(scale),
                                       options.include_last_offset(), options.padding_idx()));
}

// ---- sliding blocks
Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  TORCH_CHECK(input.dim() == 2 || input.dim() == 3,
              "Input Error: Only unbatched (2D) or batched (3D) input Tensors are supported (got ",
              input.dim(), "D)");
  return at::col2im(input, o.output_size(), o.kernel_size(), o.dilation(), o.padding(), o.stride());
}
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  TORCH_CHECK(input.dim() == 4, "Input Error: Only 4D input Tensors are supported (got ",
              input.dim(), "D)");
  return at::im2col(input, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

// ---- pooling
namespace {
template <size_t D>
std::vector<int64_t> known_sizes(const ExpandingArray<D>& wanted, const Tensor&) {
  return std::vector<int64_t>(wanted->begin(), wanted->end());
}
// A size that is left out is the input's.
template <size_t D> std::vector<int64_t>
known_sizes(const ExpandingArrayWithOptionalElem<D>& wanted, const Tensor& input) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < D; ++d)
    out.push_back((*wanted)[d] ? *(*wanted)[d] : input.size(int64_t(d) - int64_t(D)));
  return out;
}

// The size before pooling: given, or the smallest that fits.
template <size_t D>
std::vector<int64_t> unpooled_size(const Tensor& input, const MaxUnpoolFuncOptions<D>& o) {
  std::vector<int64_t> smallest;
  for (size_t d = 0; d < D; ++d)
    smallest.push_back((input.size(int64_t(d) - int64_t(D)) - 1) * (*o.stride())[d] +
                       (*o.kernel_size())[d] - 2 * (*o.padding())[d]);
  if (!o.output_size()) return smallest;
  std::vector<int64_t> given = *o.output_size();
  if (given.size() == D + 2) given.erase(given.begin(), given.begin() + 2);
  TORCH_CHECK(given.size() == D, "output_size should be a sequence containing ", D, " or ", D + 2,
              " elements, but it has a length of '", given.size(), "'");
  for (size_t d = 0; d < D; ++d) {
    const int64_t stride = (*o.stride())[d];
    TORCH_CHECK(given[d] > smallest[d] - stride && given[d] < smallest[d] + stride,
                "invalid output_size ", given, " (dim ", d, " must be between ",
                smallest[d] - stride, " and ", smallest[d] + stride, ")");
  }
  return given;
}

// The sum of p-th powers from a mean of `count` values, and its root.
Tensor root_of_sum(const Tensor& mean, int64_t count, double p) {
  return (at::sign(mean) * at::relu(at::abs(mean))).mul(count).pow(1.0 / p);
}
} // namespace

Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& o) {
  return at::avg_pool1d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                        o.count_include_pad());
}
#define CRESSET_AVG_POOL(D)                                                                        \
  Tensor avg_pool##D##d(const Tensor& input, const AvgPool##D##dFuncOptions& o) {                  \
    return at::avg_pool##D##d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),      \
                              o.count_include_pad(), o.divisor_override());                        \
  }
CRESSET_AVG_POOL(2)
CRESSET_AVG_POOL(3)
#undef CRESSET_AVG_POOL

#define CRESSET_POOLING(D)                                                                         \
  Tensor max_pool##D##d(const Tensor& input, const MaxPool##D##dFuncOptions& o) {                  \
    return at::max_pool##D##d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),       \
                              o.ceil_mode());                                                      \
  }                                                                                                \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input,                      \
                                                         const MaxPool##D##dFuncOptions& o) {      \
    return at::max_pool##D##d_with_indices(input, o.kernel_size(), o.stride(), o.padding(),        \
                                           o.dilation(), o.ceil_mode());                           \
  }                                                                                                \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptiveAvgPool##D##dFuncOptions& o) { \
    return at::adaptive_avg_pool##D##d(input, known_sizes<D>(o.output_size(), input));             \
  }                                                                                                \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                                 \
      const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) {                            \
    return at::adaptive_max_pool##D##d(input, known_sizes<D>(o.output_size(), input));             \
  }                                                                                                \
  Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) { \
    return std::get<0>(adaptive_max_pool##D##d_with_indices(input, o));                            \
  }
CRESSET_POOLING(1)
CRESSET_POOLING(2)
CRESSET_POOLING(3)
#undef CRESSET_POOLING

Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& o) {
  const std::vector<int64_t> size = unpooled_size<1>(input, o);
  return at::max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), {size[0], 1}).squeeze(-1);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& o) {
  return at::max_unpool2d(input, indices, unpooled_size<2>(input, o));
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& o) {
  return at::max_unpool3d(input, indices, unpooled_size<3>(input, o), o.stride(), o.padding());
}

Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& o) {
  const Tensor mean =
      at::avg_pool1d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), {0}, o.ceil_mode());
  return root_of_sum(mean, (*o.kernel_size())[0], o.norm_type());
}
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& o) {
  const Tensor mean =
      at::avg_pool2d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), {0, 0}, o.ceil_mode());
  return root_of_sum(mean, (*o.kernel_size())[0] * (*o.kernel_size())[1], o.norm_type());
}
Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& o) {
  const auto& k = *o.kernel_size();
  const Tensor mean = at::avg_pool3d(input.pow(o.norm_type()), o.kernel_size(), o.stride(),
                                     {0, 0, 0}, o.ceil_mode());
  return root_of_sum(mean, k[0] * k[1] * k[2], o.norm_type());
}

namespace {
template <size_t D>
std::vector<int64_t> fractional_size(const Tensor& input, const FractionalMaxPoolOptions<D>& o) {
  if (o.output_size())
    return std::vector<int64_t>((*o.output_size())->begin(), (*o.output_size())->end());
  TORCH_CHECK(o.output_ratio(), "fractional_max_pool requires specifying either an output_size "
                                "or an output_ratio");
  std::vector<int64_t> out;
  for (size_t d = 0; d < D; ++d)
    out.push_back(int64_t(double(input.size(int64_t(d) - int64_t(D))) * (**o.output_ratio())[d]));
  return out;
}
Tensor samples(const Tensor& given, const Tensor& input, int64_t dims) {
  if (given.defined()) return given;
  const int64_t batch = input.dim() == dims + 1 ? 1 : input.size(0);
  return at::rand({batch, input.size(-dims - 1), dims}, input.options());
}
} // namespace

#define CRESSET_FRACTIONAL(D)                                                                      \
  std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(                               \
      const Tensor& input, const FractionalMaxPool##D##dFuncOptions& o) {                          \
    return at::fractional_max_pool##D##d(input, o.kernel_size(), fractional_size<D>(input, o),     \
                                         samples(o._random_samples(), input, D));                  \
  }                                                                                                \
  Tensor fractional_max_pool##D##d(const Tensor& input,                                            \
                                   const FractionalMaxPool##D##dFuncOptions& o) {                  \
    return std::get<0>(fractional_max_pool##D##d_with_indices(input, o));                          \
  }
CRESSET_FRACTIONAL(2)
CRESSET_FRACTIONAL(3)
#undef CRESSET_FRACTIONAL

// ---- images
Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  TORCH_CHECK(options.pad().size() % 2 == 0, "Padding length must be divisible by 2");
  const std::string name = enumtype::get_enum_name(options.mode());
  if (name == "kConstant") return at::constant_pad_nd(input, options.pad(), options.value());
  TORCH_CHECK(options.value() == 0, "Padding mode \"", name.substr(1),
              "\" doesn't take in value argument");
  return at::pad(input, options.pad(),
                 name == "kReflect"     ? "reflect"
                 : name == "kReplicate" ? "replicate"
                                        : "circular");
}

Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options) {
  return at::pixel_shuffle(input, options.upscale_factor());
}
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options) {
  return at::pixel_unshuffle(input, options.downscale_factor());
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options) {
  if (!options.align_corners())
    TORCH_WARN("Default grid_sample and affine_grid behavior has changed to align_corners=False "
               "since 1.3.0. Please specify align_corners=True if the old behavior is desired. "
               "See the documentation of grid_sample for details.");
  return at::grid_sampler(input, grid, int64_t(options.mode().index()),
                          int64_t(options.padding_mode().index()),
                          options.align_corners().value_or(false));
}

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  TORCH_CHECK(theta.is_floating_point(), "Expected theta to have floating point type, but got ",
              c10::info(theta.scalar_type()).legacy_name);
  TORCH_CHECK(size.size() == 4 || size.size() == 5,
              "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
              "respectively. Got size ",
              size);
  const int64_t rows = int64_t(size.size()) - 2;
  TORCH_CHECK(theta.dim() == 3 && theta.size(1) == rows && theta.size(2) == rows + 1,
              "Expected a batch of ", rows, "D affine matrices of shape Nx", rows, "x", rows + 1,
              " for size ", size, ". Got ", theta.sizes(), ".");
  for (const int64_t s : size)
    TORCH_CHECK(s > 0, "Expected non-zero, positive output size. Got ", size);
  return at::affine_grid_generator(theta, size, align_corners);
}

namespace {
using Mode = InterpolateFuncOptions::mode_t;

// Sizes and factors must say one thing, once per spatial dimension.
void check_interpolation(const Tensor& input, const InterpolateFuncOptions& o) {
  const size_t dims = input.dim() < 2 ? 0 : size_t(input.dim()) - 2;
  TORCH_CHECK(o.size() || o.scale_factor(), "either size or scale_factor should be defined");
  TORCH_CHECK(!(o.size() && o.scale_factor()),
              "only one of size or scale_factor should be defined");
  if (o.scale_factor())
    TORCH_CHECK(o.scale_factor()->size() == dims,
                "scale_factor shape must match input shape. Input is ", dims,
                "D, scale_factor size is ", *o.scale_factor());
}

std::vector<int64_t> interpolated_size(const Tensor& input, const InterpolateFuncOptions& o) {
  if (o.size()) return *o.size();
  std::vector<int64_t> out;
  for (int64_t d = 2; d < input.dim(); ++d)
    out.push_back(int64_t(std::floor(double(input.size(d)) * (*o.scale_factor())[d - 2])));
  return out;
}
} // namespace

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o) {
  const bool plain = std::holds_alternative<enumtype::kNearest>(o.mode()) ||
                     std::holds_alternative<enumtype::kArea>(o.mode()) ||
                     std::holds_alternative<enumtype::kNearestExact>(o.mode());
  TORCH_CHECK(!plain || !o.align_corners().value_or(false),
              "align_corners option can only be set with the interpolating modes: linear | "
              "bilinear | bicubic | trilinear");
  TORCH_CHECK(input.dim() >= 3 && input.dim() <= 5,
              "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", input.dim(),
              "D) for the modes: nearest | linear | bilinear | bicubic | trilinear (got ",
              enumtype::get_enum_name(o.mode()), ")");
  check_interpolation(input, o);
  const std::vector<int64_t> size = interpolated_size(input, o);
  // The factor is used as it was given, unless it is to follow from the sizes.
  std::vector<std::optional<double>> s(3);
  if (o.scale_factor() && !o.recompute_scale_factor().value_or(false))
    for (size_t i = 0; i < size.size(); ++i) s[i] = (*o.scale_factor())[i];
  const bool align = o.align_corners().value_or(false);
  const std::string name = enumtype::get_enum_name(o.mode());
  const int64_t dims = input.dim() - 2;
  TORCH_CHECK(!o.antialias() || (dims == 2 && (name == "kBilinear" || name == "kBicubic")),
              "Anti-alias option is only supported for bilinear and bicubic modes");
  if (name == "kNearest")
    return dims == 1   ? at::upsample_nearest1d(input, size, s[0])
           : dims == 2 ? at::upsample_nearest2d(input, size, s[0], s[1])
                       : at::upsample_nearest3d(input, size, s[0], s[1], s[2]);
  if (name == "kNearestExact")
    return dims == 1   ? at::_upsample_nearest_exact1d(input, size, s[0])
           : dims == 2 ? at::_upsample_nearest_exact2d(input, size, s[0], s[1])
                       : at::_upsample_nearest_exact3d(input, size, s[0], s[1], s[2]);
  if (name == "kArea")
    return dims == 1   ? at::adaptive_avg_pool1d(input, size)
           : dims == 2 ? at::adaptive_avg_pool2d(input, size)
                       : at::adaptive_avg_pool3d(input, size);
  if (name == "kLinear" && dims == 1) return at::upsample_linear1d(input, size, align, s[0]);
  if (name == "kBilinear" && dims == 2)
    return o.antialias() ? at::_upsample_bilinear2d_aa(input, size, align, s[0], s[1])
                         : at::upsample_bilinear2d(input, size, align, s[0], s[1]);
  if (name == "kBicubic" && dims == 2)
    return o.antialias() ? at::_upsample_bicubic2d_aa(input, size, align, s[0], s[1])
                         : at::upsample_bicubic2d(input, size, align, s[0], s[1]);
  if (name == "kTrilinear" && dims == 3)
    return at::upsample_trilinear3d(input, size, align, s[0], s[1], s[2]);
  TORCH_CHECK(false, "Got ", dims + 2, "D input, but ", name.substr(1),
              " mode needs another number of dimensions");
  return {};
}

} // namespace torch::nn::functional
