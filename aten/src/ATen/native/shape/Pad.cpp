// Padding with a value, circular padding, the entry `pad` that chooses among all modes, and the
// operators that move channels into pixels and back.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/_pad_circular.h>
#include <ATen/ops/_pad_enum.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/native_channel_shuffle.h>
#include <ATen/ops/reflection_pad1d.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/reflection_pad3d.h>
#include <ATen/ops/replication_pad1d.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/replication_pad3d.h>

namespace at::native {
namespace {

// Numbering of the modes in _pad_enum's interface.
enum PadMode : int64_t { kReflect = 0, kReplicate = 1, kCircular = 2, kConstant = 3 };

// The part [start, start + length) of a dimension.
Tensor part(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  DimVector sizes(t.sizes());
  sizes[dim] = length;
  return detail::view_of(t, sizes, t.strides(), t.storage_offset() + start * t.stride(dim));
}

Tensor empty_in_format(IntArrayRef sizes, const Tensor& like, MemoryFormat format) {
  return detail::empty_strided(sizes, format_strides(sizes, format), like.scalar_type(),
                               like.device());
}

} // namespace

Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value) {
  const int64_t ndim = self.dim(), padded = static_cast<int64_t>(pad.size() / 2);
  TORCH_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  TORCH_CHECK(
      padded <= ndim,
      "Length of pad should be no more than twice the number of dimensions of the input. Pad "
      "length is ",
      pad.size(), "while the input has ", ndim, "dimensions.");
  DimVector sizes(self.sizes());
  Tensor source = self;
  bool grows = false;
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = ndim - 1 - i, left = pad[2 * i], right = pad[2 * i + 1];
    const int64_t cut_left = left < 0 ? -std::max(left, -INT64_MAX) : 0;
    const int64_t cut_right = right < 0 ? -std::max(right, -INT64_MAX) : 0;
    TORCH_CHECK(cut_left <= sizes[d] && cut_right <= sizes[d] - cut_left,
                "narrow(): length must be non-negative.\n  The input size ", sizes[d],
                ", plus negative padding ", std::min<int64_t>(left, 0), " and ",
                std::min<int64_t>(right, 0),
                ", resulted in a negative output size, which is invalid. Check dimension ", d,
                " of your input.");
    const int64_t kept = sizes[d] - cut_left - cut_right;
    if (kept != sizes[d]) source = part(source, d, cut_left, kept);
    const int64_t add_left = std::max<int64_t>(left, 0), add_right = std::max<int64_t>(right, 0);
    grows |= add_left + add_right != 0;
    TORCH_CHECK(!c10::add_overflows(kept, add_left, &sizes[d]) &&
                    !c10::add_overflows(sizes[d], add_right, &sizes[d]),
                "constant_pad_nd: the result is too large");
  }
  const Tensor out = empty_in_format(sizes, self, self.suggest_memory_format());
  if (grows) out.fill_(value);
  Tensor target = out;
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = ndim - 1 - i;
    target = part(target, d, std::max<int64_t>(pad[2 * i], 0), source.size(d));
  }
  target.copy_(source);
  return out;
}

// Each dimension is cropped where the padding is negative, then continued by its other end.
Tensor _pad_circular(const Tensor& self, IntArrayRef pad) {
  const int64_t ndim = self.dim(), padded = static_cast<int64_t>(pad.size() / 2);
  TORCH_CHECK(pad.size() % 2 == 0 && (padded == ndim - 1 || padded == ndim - 2),
              "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be "
              "equivalent to padding of "
              "length ",
              2 * (ndim - 1), " or ", 2 * (ndim - 2), " respectively but got ", pad.size());
  Tensor out = self.contiguous();
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = ndim - 1 - i, size = self.size(d), left = pad[2 * i], right = pad[2 * i + 1];
    TORCH_CHECK(left <= size && right <= size,
                "Padding value causes wrapping around more than once.");
    TORCH_CHECK(left >= -size && right >= -size && left + right + size >= 0,
                "Negative padding value is resulting in an empty dimension");
    out = out.slice(d, std::max<int64_t>(-left, 0), size - std::max<int64_t>(-right, 0), 1);
    const int64_t kept = out.size(d);
    TORCH_CHECK(left <= kept && right <= kept,
                "Padding value causes wrapping around more than once.");
    std::vector<Tensor> parts;
    if (left > 0) parts.push_back(out.slice(d, kept - left, kept, 1));
    parts.push_back(out);
    if (right > 0) parts.push_back(out.slice(d, 0, right, 1));
    if (parts.size() > 1) out = at::cat(parts, d);
  }
  return out.is_same(self) ? self.clone() : out;
}

Tensor _pad_enum(const Tensor& self, IntArrayRef pad, int64_t mode, std::optional<double> value) {
  const int64_t ndim = self.dim();
  TORCH_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  TORCH_CHECK(static_cast<int64_t>(pad.size()) <= ndim * 2,
              "Padding length should be less than or equal to two times the input dimension but "
              "got padding length ",
              pad.size(), " and input of dimension ", ndim);
  if (mode == kConstant) return at::constant_pad_nd(self, pad, value.value_or(0.0));
  static const char* const names[] = {"reflect", "replicate", "circular"};
  const bool known = mode >= kReflect && mode <= kCircular;
  TORCH_CHECK(!value || *value == 0 || !known, "Padding mode \"", names[known ? mode : 0],
              "\" doesn't take in value argument");
  const int64_t padded = static_cast<int64_t>(pad.size() / 2);
  if (known && padded >= 1 && padded <= 3 && (ndim == padded + 1 || ndim == padded + 2)) {
    using PadFn = Tensor (*)(const Tensor&, IntArrayRef);
    static const PadFn reflect[] = {&at::reflection_pad1d, &at::reflection_pad2d,
                                    &at::reflection_pad3d};
    static const PadFn replicate[] = {&at::replication_pad1d, &at::replication_pad2d,
                                      &at::replication_pad3d};
    if (mode == kCircular) return at::_pad_circular(self, pad);
    return (mode == kReflect ? reflect : replicate)[padded - 1](self, pad);
  }
  throw c10::NotImplementedError(
      c10::str("Padding size ", pad.size(), " is not supported for ", ndim,
               "D input tensor.\nSupported combinations for non-constant padding:\n"
               "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
               "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
               "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)\n"
               "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"));
}

Tensor pad(const Tensor& self, IntArrayRef pad, std::string_view mode,
           std::optional<double> value) {
  static constexpr std::pair<std::string_view, int64_t> modes[] = {{"reflect", kReflect},
                                                                   {"replicate", kReplicate},
                                                                   {"circular", kCircular},
                                                                   {"constant", kConstant}};
  for (const auto& [name, number] : modes)
    if (mode == name) return at::_pad_enum(self, pad, number, value);
  throw c10::NotImplementedError(c10::str("Unrecognised padding mode ", mode));
}

// ---- channels into pixels and back
namespace {

// The copy of `view`, a view of self with more dimensions, in the shape `sizes`.
Tensor copied_as(const Tensor& view, IntArrayRef sizes, const Tensor& self) {
  const Tensor dense = view.clone(MemoryFormat::Contiguous);
  const Tensor out = detail::view_of(dense, sizes, c10::contiguous_strides(sizes), 0);
  const MemoryFormat format = self.suggest_memory_format();
  if (format != MemoryFormat::Contiguous) return out.clone(format);
  return Tensor(out.unsafeGetTensorImpl()->shallow_copy());
}

} // namespace

Tensor pixel_shuffle(const Tensor& self, int64_t factor) {
  const int64_t ndim = self.dim();
  TORCH_CHECK(ndim >= 3,
              "pixel_shuffle expects input to have at least 3 dimensions, but got input with ",
              ndim, " dimension(s)");
  TORCH_CHECK(factor > 0, "pixel_shuffle expects a positive upscale_factor, but got ", factor);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1);
  int64_t square = 0;
  TORCH_CHECK(!c10::mul_overflows(factor, factor, &square) && c % square == 0,
              "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
              "of upscale_factor, "
              "but input.size(-3)=",
              c, " is not divisible by ", square);
  DimVector sizes(self.sizes()), split(self.sizes().slice(0, static_cast<size_t>(ndim - 3))), order;
  sizes[ndim - 3] = c / square;
  TORCH_CHECK(!c10::mul_overflows(h, factor, &sizes[ndim - 2]) &&
                  !c10::mul_overflows(w, factor, &sizes[ndim - 1]),
              "pixel_shuffle: the result is too large");
  for (int64_t s : {c / square, factor, factor, h, w}) split.push_back(s);
  for (int64_t d = 0; d < ndim - 3; ++d) order.push_back(d);
  const int64_t b = ndim - 3;
  for (int64_t d : {b, b + 3, b + 1, b + 4, b + 2}) order.push_back(d);
  return copied_as(native::permute(native::reshape(self, split), order), sizes, self);
}

Tensor pixel_unshuffle(const Tensor& self, int64_t factor) {
  const int64_t ndim = self.dim();
  TORCH_CHECK(ndim >= 3,
              "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ",
              ndim, " dimension(s)");
  TORCH_CHECK(factor > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", factor);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1);
  TORCH_CHECK(h % factor == 0,
              "pixel_unshuffle expects height to be divisible by downscale_factor, but "
              "input.size(-2)=",
              h, " is not divisible by ", factor);
  TORCH_CHECK(w % factor == 0,
              "pixel_unshuffle expects width to be divisible by downscale_factor, but "
              "input.size(-1)=",
              w, " is not divisible by ", factor);
  DimVector sizes(self.sizes()), split(self.sizes().slice(0, static_cast<size_t>(ndim - 3))), order;
  int64_t square = 0;
  TORCH_CHECK(!c10::mul_overflows(factor, factor, &square) &&
                  !c10::mul_overflows(c, square, &sizes[ndim - 3]),
              "pixel_unshuffle: the downscale_factor ", factor, " is too large");
  sizes[ndim - 2] = h / factor;
  sizes[ndim - 1] = w / factor;
  for (int64_t s : {c, h / factor, factor, w / factor, factor}) split.push_back(s);
  for (int64_t d = 0; d < ndim - 3; ++d) order.push_back(d);
  const int64_t b = ndim - 3;
  for (int64_t d : {b, b + 2, b + 4, b + 1, b + 3}) order.push_back(d);
  return copied_as(native::permute(native::reshape(self, split), order), sizes, self);
}

Tensor native_channel_shuffle(const Tensor& self, int64_t groups) {
  const int64_t ndim = self.dim();
  TORCH_CHECK(ndim > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ",
              self.sizes());
  TORCH_CHECK(groups > 0,
              "Number of groups to divide channels in must be positive. Value of groups:", groups);
  const int64_t c = self.size(1);
  TORCH_CHECK(c % groups == 0, "Number of channels must be divisible by groups. Got ", c,
              " channels and ", groups, " groups.");
  DimVector split(self.sizes());
  split[1] = groups;
  split.insert(split.begin() + 2, c / groups);
  return copied_as(native::transpose(native::reshape(self, split), 1, 2), self.sizes(), self);
}
Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  return native::native_channel_shuffle(self, groups);
}

} // namespace at::native
